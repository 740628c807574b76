"""What docs/design.md says of the house holds for every file; each check is shown to fail.

A check takes the sources, {"rows/csr.py": text}, and returns a sentence for each breach.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import adafw

ROOT = Path(adafw.__file__).parent
SOURCES = {p.relative_to(ROOT).as_posix(): p.read_text() for p in sorted(ROOT.rglob("*.py"))}

# From low to high. A part imports those below it; parts of one layer do not import each other.
LAYERS = [
    {"typing", "later", "called"},
    {"checks", "kernels", "memory"},
    {"arrays", "random", "schedules"},
    {"describe", "lanczos"},
    {"charts", "page", "versions"},
    {"constraints", "losses", "rows"},
    {"io", "objectives"},
    {"gradients", "metrics"},
    {"steps"},
    {"algorithm"},
    {"algorithms"},
    {"names", "solver"},
    {"integrity"},
    {"recorder", "fused"},
    {"paths"},
    {"distributed"},
    {"progress", "stopping", "tensorboard", "kept_sample", "measured_rate"},
    {"fresh_start"},
    {"result", "auto_rate", "beginning"},
    {"minimize"},
    {"datasets", "theory", "tuning", "torch"},
    {"fitting"},
    {"sklearn"},
    {"experiments"},
    {"commands"},
    {"cli"},
    {"exports"},
    {"__main__", "__init__"},
]
# Kinds of experiment that do not know others; a series and a zoo are made of convex runs.
APART = {
    "experiments/convex/": {"experiments/networks/", "experiments/series/", "experiments/zoo/"},
    "experiments/networks/": {"experiments/convex/", "experiments/series/", "experiments/zoo/"},
    "experiments/series/": {"experiments/networks/", "experiments/zoo/"},
    "experiments/zoo/": {"experiments/networks/", "experiments/series/"},
}
HEAVY = {
    "numba", "torch", "sklearn", "matplotlib", "pandas", "rich", "click", "pooch", "pyarrow",
    "tensorboard", "dask", "distributed",
}  # fmt: skip
# Parts that are themselves imported only when asked for, and what they may import at their top.
MAY = {
    "kernels": {"numba"},
    "distributed": {"distributed"},
    "torch": {"torch", "numba"},
    "sklearn": {"sklearn"},
    "cli": {"click"},
    "commands": {"click"},
}
# Modules imported only where networks are trained.
TRAINED = {
    f"experiments/networks/{name}.py"
    for name in ("batches", "lessons", "loop", "models", "optimizers", "probes")
}
# Names kept importable, in the layer where they were, of what has moved up to the experiments.
MOVED_UP = {f"torch/{name}.py" for name in ("batches", "networks", "training")}
# There a sparse matrix is no data matrix, but the list of the entries observed.
OBSERVED = "sklearn/completion.py"
# There it is atoms, or slopes of observed entries, that are dense or sparse, and no data.
ATOMS = {"steps/active_set.py", "steps/corrective/factors.py"}
# One thing in two forms: a method here and in torch, work that ranks do together in three ways,
# the x of a kernel and of a corrector.
TWINS = {"SVRF", "ORGFW", "AdaGrad", "AMSGrad", "Job", "Point"}
KIND = re.compile("experiments/[a-z]+/__init__.py")
LONGEST_FILE, LONGEST_FUNCTION = 400, 50
# Longer than that, and why.
LONG = {
    "minimize.py: minimize": "16 keywords of the contract, each checked where it comes in",
    "kernels/libsvm.py: parse": "one automaton over bytes; its states share eight locals",
    "kernels/descent.py: descend": "one compiled loop, whose parts would share its locals",
    "kernels/scaled.py: descend": "one compiled loop, whose parts would share its locals",
    "kernels/brief.py: brief": "one compiled loop, whose parts would share its locals",
    "kernels/joint_descent.py: descend": "one compiled loop, whose parts would share its locals",
    "steps/corrective/atoms.py: improve": "one pass of the method, in the order of its lines",
}


#: Types that are Any in one place of their own, such as the kind of number in an array.
HOLD_ANY = {
    "NDArray", "np.dtype", "np.floating", "np.integer", "np.memmap", "np.ndarray",
    "np.unsignedinteger",
}  # fmt: skip
#: How often Any may stand in a file; *arguments and **options, which are handed on, do not count.
MAY_SAY_ANY = {
    # Shapes that libraries without types of their own hand out, each named once.
    "typing.py": 7, "distributed/typing.py": 3, "sklearn/typing.py": 1, "torch/typing.py": 9,
    "experiments/drawing.py": 1, "experiments/kind.py": 2, "steps/corrective/base.py": 1,
    # Names that are looked up when they are asked for; values that a file's key decides on.
    "__init__.py": 1, "called.py": 2, "distributed/__init__.py": 1, "later.py": 2, "names.py": 1,
    "experiments/keys.py": 1, "experiments/values.py": 5, "fitting/matrix_sets.py": 1,
    "fitting/settings.py": 2,
    # Calls of numpy's generators, of click, Dask, matplotlib, numba, pandas, scipy, torch.
    "arrays.py": 1, "commands/cluster.py": 2, "commands/fitting.py": 3, "commands/options.py": 2,
    "commands/predict.py": 3, "commands/reproduce.py": 2, "commands/score.py": 1,
    "commands/tune.py": 2, "constraints/polytope.py": 2, "distributed/cluster.py": 1,
    "distributed/crew.py": 1, "distributed/engine.py": 3, "distributed/parts.py": 1,
    "distributed/shelf.py": 1, "experiments/networks/loop.py": 1,
    "experiments/networks/optimizers.py": 1, "experiments/series/figures.py": 1,
    "kernels/jit.py": 1, "random.py": 5, "recorder.py": 4, "stopping.py": 1, "tensorboard.py": 1,
    "torch/base.py": 3, "torch/exchange.py": 1, "torch/sharded.py": 1, "torch/updates.py": 1,
    "torch/variance_reduction.py": 4,
    # What only a check of another function tells apart.
    "describe.py": 1, "distributed/local_run.py": 1, "distributed/local_steps.py": 1,
    "fused/batches.py": 3, "fused/problem.py": 1, "gradients/sampling.py": 1,
    "objectives/base.py": 2, "objectives/matrix_model.py": 4, "sklearn/base.py": 3,
    "sklearn/path.py": 3, "solver.py": 1,
}  # fmt: skip


def part(file):
    return file.split("/")[0].removesuffix(".py")


def level(name):
    return next((i for i, layer in enumerate(LAYERS) if name in layer), None)


def module_name(file):
    return ".".join(["adafw", *file.removesuffix(".py").removesuffix("/__init__").split("/")])


@cache
def nodes(text):
    return list(ast.walk(ast.parse(text)))


def walk(sources, but=()):
    """(file, node) for every node of every file that does not begin with one of `but`."""
    for file, text in sources.items():
        if not file.startswith(tuple(but)):
            yield from ((file, node) for node in nodes(text))


def called(node):
    """The plain name that a call calls, "" for anything else."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if named else ""


def imported(file, node, modules=()):
    """Full names that an import statement asks for, relative ones resolved.

    Of `from a import b`, a.b where that is one of the modules and a elsewhere. Importing a.b.c
    runs a and a.b, too; those are there already whenever a module below them asks.
    """
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    start = node.module or ""
    if node.level:
        package = ["adafw", *file.split("/")[:-1]]
        start = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
    names = (f"{start}.{alias.name}" for alias in node.names)
    return [name if name in modules or start == "adafw" else start for name in names]


def imports_that_do_not_go_down(sources):
    for file in sources:
        if level(part(file)) is None:
            yield f"{file}: {part(file)} stands in no layer of tests/test_architecture.py"
    for file, node in walk(sources, but=("__init__.py", *MOVED_UP)):
        for name in imported(file, node):
            other = [*name.split("."), ""][1] if name.startswith("adafw.") else "__version__"
            if other.startswith("__") or other == part(file) or level(part(file)) is None:
                continue
            if level(other) is None:
                yield f"{file}: {other} stands in no layer of tests/test_architecture.py"
            elif level(other) >= level(part(file)):
                yield f"{file} imports {other}, which stands above or beside it"


def imports_between_parts_apart(sources):
    modules = {module_name(file) for file in sources}
    for file, node in walk(sources):
        for other in APART.get("/".join(file.split("/")[:2]) + "/", ()):
            inside = module_name(other + "__init__.py")
            if any(f"{n}.".startswith(f"{inside}.") for n in imported(file, node, modules)):
                yield f"{file} imports from {other}"


def cycles(sources):
    """The modules of a cycle; imports inside functions and for type checkers count, too."""
    modules = {module_name(file) for file in sources}
    graph = {name: set() for name in modules}
    for file, node in walk(sources):
        graph[module_name(file)] |= set(imported(file, node, modules)) & modules
    try:
        TopologicalSorter({a: b - {a} for a, b in graph.items()}).prepare()
    except CycleError as error:
        yield " imports ".join(reversed(error.args[1]))


def relative_imports(sources):
    for file, node in walk(sources):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"{file}:{node.lineno} imports by a relative name; write adafw. ..."


def heavy_at_the_top(sources):
    for file, text in sources.items():
        found = {n.split(".")[0] for node in nodes(text)[0].body for n in imported(file, node)}
        allowed = {"torch"} if file in TRAINED else MAY.get(part(file), set())
        for name in sorted((found & HEAVY) - allowed):
            yield f"{file} imports {name} at its top; import it where it is needed"


def long_files(sources):
    for file, text in sources.items():
        if (lines := len(text.splitlines())) > LONGEST_FILE:
            yield f"{file} has {lines} lines, at most {LONGEST_FILE} are allowed"


def long_functions(sources):
    """Lines beside the docstring, which has a bound of its own."""
    for file, node in walk(sources):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            lines = node.end_lineno - node.lineno + 1
            lines -= 0 if text is None else len(text.splitlines())
            if lines > LONGEST_FUNCTION and f"{file}: {node.name}" not in LONG:
                yield f"{file}: {node.name} has {lines} lines, at most {LONGEST_FUNCTION}"


def compiled_elsewhere(sources):
    """Compilers of numba outside jit.py, where caches that cannot be written are seen to."""
    compilers = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil"}
    for file, node in walk(sources, but=["kernels/jit.py"]):
        named = node.names if isinstance(node, ast.ImportFrom) and node.module == "numba" else ()
        of_numba = (
            isinstance(node, ast.Attribute)
            and node.attr in compilers
            and ast.unparse(node.value) == "numba"
        )
        if {alias.name for alias in named} & compilers or of_numba:
            yield f"{file}:{node.lineno} compiles by itself; use adafw.kernels.jit.jit"


def rows_told_apart(sources):
    """Questions for the type of rows outside rows/ and the fast paths."""
    for file, node in walk(sources, but=["rows/", "fused/"]):
        asked = ""
        if called(node) in ("isinstance", "issubclass"):
            asked = ast.unparse(node.args[1])
        elif isinstance(node, ast.Compare) and called(node.left) == "type":
            asked = " ".join(map(ast.unparse, node.comparators))
        words = "".join(c if c.isalnum() else " " for c in asked).split()
        if any(word.endswith("Rows") for word in words):
            yield f"{file}:{node.lineno} asks for the type of rows; let Rows declare it"


def dense_told_from_sparse(sources):
    """The matrix behind rows, or scipy's questions, outside rows/."""
    for file, node in walk(sources, but=[OBSERVED, "rows/"]):
        if isinstance(node, ast.IfExp) and called(node.test) == "isinstance":
            ends = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            if "ndarray" in ends and ends & {"data", "toarray", "todense"} and file not in ATOMS:
                yield f"{file}:{node.lineno} tells arrays from sparse matrices; let rows/ do it"
        names = {alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "asname")}
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
            if node.attr in ("matrix", "array") and ast.unparse(node.value).endswith("rows"):
                yield f"{file}:{node.lineno} reads the matrix behind rows; let Rows declare it"
        elif isinstance(node, ast.Name):
            names.add(node.id)
        if names & {"issparse", "isspmatrix", "isspmatrix_csr"}:
            yield f"{file}:{node.lineno} asks whether a matrix is sparse; make it rows by as_rows"


def torch_asked_for(sources):
    """Torch outside arrays.py, torch/ and where networks are trained."""
    for file, node in walk(sources, but=["arrays.py", "torch/", "experiments/networks/"]):
        asks = any(name.split(".")[0] == "torch" for name in imported(file, node))
        of_modules = isinstance(node, ast.Subscript | ast.Call) and "sys.modules" in ast.unparse(
            node.value if isinstance(node, ast.Subscript) else node.func
        )
        if asks or (of_modules and "'torch'" in ast.unparse(node)):
            yield f"{file}:{node.lineno} asks for torch; adafw.arrays knows numpy from torch"


def contracts_by_hasattr(sources):
    """Members that may be there or not; scikit-learn's own way, and users' objects, aside."""
    for file, node in walk(sources, but=["sklearn/", "constraints/polytope.py"]):
        # What an operating system has is asked of `os` itself.
        if called(node) == "hasattr" and ast.unparse(node.args[0]) != "os":
            yield f"{file}:{node.lineno} asks hasattr; declare the member at the base class"


def words_used_twice(sources):
    """Classes of one name in two files: a word should mean one thing in the house."""
    found = {}
    for file, text in sources.items():
        for node in nodes(text)[0].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(file)
    for name, files in found.items():
        if len(files) > 1 and name not in TWINS:
            yield f"{' and '.join(files)} have a class {name} each; give one another name"


def loops_over_estimates(sources):
    """Functions that ask a gradient estimator again and again, whatever they call it.

    A gradient estimator's `update` is the one that takes (f, x, t, state, rng).
    """
    repeats = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
    for file, function in walk(sources):
        if not isinstance(function, ast.FunctionDef):
            continue
        inside = [
            n for loop in ast.walk(function) if isinstance(loop, repeats) for n in ast.walk(loop)
        ]
        if any(
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "update"
            and len(call.args) + len(call.keywords) == 5
            for call in inside
        ):
            yield f"{file}: {function.name}"


def bare_any(node):
    """Every Any that stands for a value itself."""
    if isinstance(node, ast.Name) and node.id == "Any":
        yield node
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in HOLD_ANY:
        return
    handed_on = (node.vararg, node.kwarg) if isinstance(node, ast.arguments) else ()
    for child in ast.iter_child_nodes(node):
        if child not in handed_on:
            yield from bare_any(child)


def any_without_reason(sources):
    """Values of no type, beyond those that the table of files allows."""
    for file, text in sources.items():
        found, most = list(bare_any(nodes(text)[0])), MAY_SAY_ANY.get(file, 0)
        if len(found) > most:
            yield (
                f"{file}:{found[-1].lineno} says Any, {len(found)} times in all, at most {most} "
                "are allowed; give the type, or object where nothing is asked of the value"
            )


CHECKS = [
    imports_that_do_not_go_down, imports_between_parts_apart, cycles, relative_imports,
    heavy_at_the_top, long_files, long_functions, compiled_elsewhere, rows_told_apart,
    dense_told_from_sparse, torch_asked_for, contracts_by_hasattr, words_used_twice,
    any_without_reason,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house(check):
    assert list(check(SOURCES)) == []


def test_exceptions_are_functions_that_exist():
    there = {
        f"{file}: {node.name}" for file, node in walk(SOURCES) if isinstance(node, ast.FunctionDef)
    }
    assert set(LONG) <= there


def test_files_that_may_say_any_do():
    """So that the table falls with what it counts."""
    counts = {file: len(list(bare_any(nodes(text)[0]))) for file, text in SOURCES.items()}
    assert {file: most for file, most in MAY_SAY_ANY.items() if not counts.get(file)} == {}


def test_a_word_used_twice_is_seen():
    one, other = "class Line: ...", "class Rule: ...\nclass _Line: ..."
    assert list(words_used_twice({"io/a.py": one, "rows/b.py": other})) == []
    (said,) = words_used_twice({"io/a.py": one, "rows/b.py": other.replace("Rule", "Line")})
    assert said.startswith("io/a.py and rows/b.py have a class Line each")


def test_every_kind_of_experiment_stands_apart():
    kinds = {f"experiments/{file.split('/')[1]}/" for file in SOURCES if KIND.match(file)}
    assert set(APART) == kinds
    assert all(known <= kinds - {kind} for kind, known in APART.items())


def test_there_is_one_loop():
    """Only the solver's run goes from estimate to estimate; fast paths do it inside kernels."""
    assert list(loops_over_estimates(SOURCES)) == ["solver.py: run"]


LOOP = """
def solve(problem, est, mover, z):
    t = 0
    while t < 10:
        v, memory = est.update(problem, z, t, memory, rng=source)
        z, rest = mover.update(problem, ball, z, v, t, rest)
"""
LONG_BODY = "def f():\n" + '    """Said."""\n' + "    x = 1\n" * 49

# check, sources it lets pass, what breaks it when it is put in the place of the file
BREACHES = [
    (imports_that_do_not_go_down, "steps/a.py", "import adafw.gradients", "import adafw.minimize"),
    (imports_that_do_not_go_down, "steps/a.py", "", "from adafw import minimize"),
    (imports_that_do_not_go_down, "steps/a.py", "", "from ..minimize import minimize"),
    (imports_that_do_not_go_down, "steps/a.py", "", "from .. import minimize"),
    (imports_that_do_not_go_down, "steps/a.py", "", "def f():\n    import adafw.fitting.linear"),
    (imports_that_do_not_go_down, "rows/a.py", "import adafw.rows.b", "import adafw.constraints"),
    (imports_that_do_not_go_down, "rows/a.py", "", "import adafw.drawer"),
    (imports_that_do_not_go_down, "drawer.py", None, ""),
    (imports_between_parts_apart, "experiments/convex/a.py", "import adafw.experiments.kind",
     "from adafw.experiments.series import b"),
    (imports_between_parts_apart, "experiments/convex/a.py", "", "from ..networks.run import x"),
    (relative_imports, "rows/a.py", "from adafw.rows import b", "from . import b"),
    (heavy_at_the_top, "rows/a.py", "def f():\n    import pandas", "import pandas.api"),
    (long_files, "rows/a.py", "\n" * 400, "\n" * 401),
    (long_functions, "rows/a.py", LONG_BODY, LONG_BODY + "    y = 2\n"),
    (compiled_elsewhere, "kernels/a.py", "from adafw.kernels.jit import jit",
     "from numba import njit"),
    (compiled_elsewhere, "torch/a.py", "import numba", "import numba\n@numba.njit\ndef f(): ..."),
    (rows_told_apart, "fitting/a.py", "isinstance(x, LinearModel)", "isinstance(x, CSRRows)"),
    (rows_told_apart, "fitting/a.py", "", "isinstance(x, (rows.DenseRows, rows.CSRRows))"),
    (rows_told_apart, "fitting/a.py", "type(x) is LinearModel", "type(x.rows) is DenseRows"),
    (rows_told_apart, "fitting/a.py", "", "type(x) in (DenseRows, CSRRows)"),
    (dense_told_from_sparse, "fused/a.py", "self.matrix.shape", "f.rows.matrix.nnz"),
    (dense_told_from_sparse, "fused/a.py", "rows.stored", "rows.matrix"),
    (dense_told_from_sparse, "steps/a.py", "", "sparse.issparse(A)"),
    (dense_told_from_sparse, "steps/a.py", "", "from scipy.sparse import issparse"),
    (dense_told_from_sparse, "io/a.py", "values_of(X)",
     "X if isinstance(X, np.ndarray) else X.data"),
    (torch_asked_for, "steps/a.py", "import numpy", "def f():\n    import torch.linalg"),
    (torch_asked_for, "steps/a.py", "", "from torch import Tensor"),
    (torch_asked_for, "steps/a.py", "sys.modules['numpy']", "sys.modules['torch'].dot(a, b)"),
    (torch_asked_for, "steps/a.py", "", "torch = sys.modules.get('torch')"),
    (any_without_reason, "rows/a.py", "def f(x: NDArray[Any], **options: Any): ...",
     "def f(x: dict[str, Any]): ..."),
    (any_without_reason, "rows/a.py", "x: np.integer[Any] = 1", "x = cast(Any, y)"),
    (any_without_reason, "solver.py", "x: Any", "x: Any\ny: Any"),
    (contracts_by_hasattr, "fitting/a.py", "x.radius", "hasattr(x, 'radius')"),
    (loops_over_estimates, "steps/a.py", LOOP.replace("while t < 10", "if t < 10"), LOOP),
]  # fmt: skip


@pytest.mark.parametrize(("check", "file", "good", "bad"), BREACHES)
def test_a_breach_is_seen(check, file, good, bad):
    if good is not None:
        assert list(check({file: good})) == []
    (said, *_) = check({file: bad})
    assert said.startswith(file)


@pytest.mark.parametrize(
    "back",
    [
        "import adafw.inner.a",
        "from adafw.inner import a",
        "from adafw.inner.a import thing",
        "from . import a",
        "from .a import thing",
        "from ..inner.a import thing",
        "def f():\n    from adafw.inner import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from adafw.inner import a",
    ],
)
def test_a_cycle_is_seen(back):
    sources = {"inner/__init__.py": "", "inner/a.py": "from adafw.inner import b\nthing = 1"}
    assert list(cycles({**sources, "inner/b.py": ""})) == []
    (said,) = cycles({**sources, "inner/b.py": back})
    assert "adafw.inner.a" in said
    assert "adafw.inner.b" in said
