"""adafw.torch is there when asked for, and costs nothing before."""

import subprocess
import sys


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_torch_and_numba_are_imported_only_when_asked_for():
    code = (
        "import sys, adafw; assert 'torch' not in sys.modules, 'torch'; "
        "adafw.torch.AdaSFW; assert 'torch' in sys.modules; "
        "assert 'adafw.torch.kernels' not in sys.modules, 'kernels'"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_without_numba_plain_torch_does_the_work():
    code = (
        "import sys; sys.modules['numba'] = None; import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'numba' else find(name, *a)\n"
        "import torch, adafw; p = torch.nn.Parameter(torch.zeros(3)); p.grad = torch.ones(3)\n"
        "adafw.torch.AdamSFW([{'params': [p], 'constraint': adafw.LInfBall(1.0)}], lr=0.1).step()\n"
        "assert (p < 0).all()"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
