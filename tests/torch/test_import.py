"""adafw.torch is there when asked for, and costs nothing before."""

import subprocess
import sys
from importlib import import_module

import pytest


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
        "import torch, adafw; from adafw.torch import SFW, AdamSFW, AdaSFW, Lion, Signum\n"
        "def moved(make, ball):\n"
        "    ps = [torch.nn.Parameter(torch.zeros(3)) for _ in range(2)]\n"
        "    for p in ps: p.grad = torch.ones(3)\n"
        "    make([{'params': ps, 'constraint': ball}], lr=0.1).step()\n"
        "    assert all((p <= 0).all() and p.any() for p in ps), (make, ball)\n"
        "for ball in (adafw.LInfBall(1.0), adafw.L1Ball(1.0), adafw.L2Ball(1.0), None):\n"
        "    for make in (SFW, AdaSFW, AdamSFW): moved(make, ball)\n"
        "for make in (Lion, Signum): moved(make, None)\n"
        "try: SFW([{'params': [torch.nn.Parameter(torch.zeros(3))],\n"
        "           'constraint': adafw.LInfBall(1.0)}], lr=0.1, fused=True)\n"
        "except ValueError as error: assert 'numba is not installed' in str(error)\n"
        "else: raise AssertionError\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_names_that_have_moved_are_found_where_they_were():
    pytest.importorskip("torch")
    for old, new, names in (
        ("training", "loop", ["train"]),
        ("networks", "models", ["CifarNet", "ImdbNet", "glorot_"]),
        ("batches", "batches", ["ImageBatches", "ReviewBatches", "TensorBatches"]),
    ):
        here = import_module(f"adafw.torch.{old}")
        there = import_module(f"adafw.experiments.networks.{new}")
        assert sorted(here.__all__) == names
        for name in names:
            assert getattr(here, name) is getattr(there, name)
