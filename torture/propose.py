"""Candidates for planted slips: one-token changes as a tired developer makes them.

    python -m torture.propose > torture/slips.json

The list is kept in the repository and read by people: a slip that changes nothing is marked there.
"""

import ast
import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "adafw"

#: Which tests should see a slip in a part of the package, the quickest first.
TESTS = {
    "io": ["tests/io", "tests/datasets"],
    "datasets": ["tests/datasets", "tests/rows/test_matrices.py", "tests/paper"],
    "kernels": ["tests/kernels", "tests/io/test_libsvm.py", "tests/fused", "tests/rows",
                "tests/torch/test_torch_kernels.py"],
    "fused": ["tests/fused", "tests/test_integrity.py"],
    "constraints": ["tests/constraints", "tests/contracts"],
    "rows": ["tests/rows", "tests/objectives", "tests/io/test_parts.py"],
    "objectives": ["tests/objectives", "tests/test_losses.py", "tests/test_minimize.py"],
    "gradients": ["tests/contracts/test_gradients.py", "tests/paper", "tests/test_minimize.py"],
    "metrics": ["tests/metrics", "tests/paper"],
    "steps": ["tests/steps", "tests/paper", "tests/test_minimize.py"],
    "fitting": ["tests/fitting", "tests/sklearn", "tests/cli"],
    "sklearn": ["tests/sklearn"],
    "theory": ["tests/theory", "tests/paper"],
    "torch": ["tests/torch"],
    "experiments": ["tests/experiments"],
    "commands": ["tests/cli", "tests/test_cli.py"],
    "losses": ["tests/test_losses.py", "tests/test_losses_huber_poisson.py",
               "tests/test_loss_curvature.py", "tests/objectives"],
}  # fmt: skip
OTHERS = ["tests/test_minimize.py", "tests/test_integrity.py", "tests/test_schedules.py",
          "tests/test_recorder.py", "tests/test_tuning.py", "tests/test_random.py", "tests/fused",
          "tests/contracts"]  # fmt: skip
#: How many slips of a part; what is drawn and told is left out.
QUOTA = {"io": 32, "kernels": 26, "constraints": 34, "fused": 14, "rows": 14, "objectives": 12,
         "gradients": 12, "metrics": 10, "steps": 20, "fitting": 22, "sklearn": 10, "theory": 12,
         "torch": 18, "experiments": 12, "commands": 6, "datasets": 8, "losses": 8}  # fmt: skip
OTHER_QUOTA = 5
SKIPPED = {
    "__init__.py", "__main__.py", "cli.py", "typing.py", "report.py", "html.py", "figures.py",
    "drawing.py", "live.py", "progress.py", "tensorboard.py", "boards.py", "notices.py",
}  # fmt: skip

COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
JOINED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin",
         "argmin": "argmax", "zeros": "ones", "floor": "ceil", "ceil": "floor"}  # fmt: skip
SYMMETRIC = {"min", "max", "minimum", "maximum", "vdot", "dot", "hypot", "isclose", "allclose"}


def candidates(path: Path) -> list[tuple[int, str, str]]:
    """(line number, line, changed line) of all one-token changes of a file."""
    text = path.read_text()
    lines = text.splitlines()
    found = []
    tree = ast.parse(text)
    silent = _silent(tree)
    for node in ast.walk(tree):
        if not hasattr(node, "lineno") or node.lineno in silent:
            continue
        for old, new, start, end in _changes(node):
            line = lines[start[0] - 1]
            if start[0] != end[0]:
                continue
            piece = line[start[1] : end[1]]
            if piece.count(old) != 1:
                continue
            changed = line[: start[1]] + piece.replace(old, new) + line[end[1] :]
            if lines.count(line) == 1 and changed != line:
                found.append((start[0], line, changed))
    return found


def _silent(tree: ast.AST) -> set[int]:
    """Lines of messages, docstrings, decorators, constants of types: no behaviour."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.ImportFrom):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__", "describe"):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _changes(node: ast.AST):
    """(token, other token, where between) of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        kind = type(node.ops[0])
        between = (node.left.end_lineno, node.left.end_col_offset)
        right = node.comparators[0]
        yield SIGNS[kind], COMPARED[kind], between, (right.lineno, right.col_offset)
    if isinstance(node, ast.BinOp) and type(node.op) in JOINED:
        old, new = JOINED[type(node.op)]
        between = (node.left.end_lineno, node.left.end_col_offset)
        yield old, new, between, (node.right.lineno, node.right.col_offset)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield (
            "not ",
            "",
            (node.lineno, node.col_offset),
            (node.operand.lineno, node.operand.col_offset),
        )
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        left, right = node.values
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield old, new, (left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset)
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1, 2, 3):
        where = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        yield str(node.value), str(node.value + 1), *where
    if isinstance(node, ast.Call):
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name in CALLS:
            end = (node.func.end_lineno, node.func.end_col_offset)
            yield name, CALLS[name], (end[0], end[1] - len(name)), end


def slips(path: Path) -> list[tuple[int, str, str]]:
    """As `candidates`, with what is left out, swapped or of the wrong kind as well."""
    text = path.read_text()
    lines = text.splitlines()
    tree = ast.parse(text)
    silent = _silent(tree)
    found = candidates(path)
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr | ast.stmt) or node.lineno in silent:
            continue
        line = lines[node.lineno - 1]
        if node.lineno != node.end_lineno or lines.count(line) != 1:
            continue
        if not line.isascii():  # columns are counted in bytes
            continue
        start, end = node.col_offset, node.end_col_offset or 0
        for new in _rewritten(node):
            changed = line[:start] + new + line[end:]
            found.append((node.lineno, line, changed))
    return [(at, old, new) for at, old, new in dict.fromkeys(found) if _parses(lines, at, new)]


def _parses(lines: list[str], at: int, changed: str) -> bool:
    try:
        ast.parse("\n".join([*lines[: at - 1], changed, *lines[at:]]))
    except SyntaxError:
        return False
    return True


def _rewritten(node: ast.AST):
    """What a tired developer may have written in place of a node."""
    match node:
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "pass"
        case ast.AugAssign(target=target, op=op, value=value):
            a, b = ast.unparse(target), ast.unparse(value)
            yield f"{a} = {b}"
            other = {ast.Add: "-=", ast.Sub: "+=", ast.Mult: "/=", ast.Div: "*="}.get(type(op))
            if other:
                yield f"{a} {other} {b}"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            if not isinstance(operand, ast.Constant) or operand.value not in (0, 0.0):
                yield ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Compare(left=a, ops=[op], comparators=[b]):
            a, b = ast.unparse(a), ast.unparse(b)
            other = {
                ast.Is: "is not",
                ast.IsNot: "is",
                ast.In: "not in",
                ast.NotIn: "in",  # codespell:ignore
            }
            if type(op) in other:
                yield f"{a} {other[type(op)]} {b}"
        case ast.BinOp(left=a, op=op, right=b):
            a, b = ast.unparse(a), ast.unparse(b)
            if isinstance(op, ast.FloorDiv):
                yield f"-(-{a} // {b})"
            if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow):
                yield a
        case ast.BoolOp(values=values):
            sign = " and " if isinstance(node.op, ast.And) else " or "
            for k in range(len(values)):
                yield sign.join(ast.unparse(v) for j, v in enumerate(values) if j != k)
        case ast.IfExp(body=a, orelse=b):
            yield ast.unparse(a)
            yield ast.unparse(b)
        case ast.Call(func=func, args=args, keywords=keywords):
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if name in ("min", "max", "minimum", "maximum") and len(args) == 2:
                yield ast.unparse(args[0])
                yield ast.unparse(args[1])
            if name in ("copy", "conj", "ravel") and isinstance(func, ast.Attribute):
                yield ast.unparse(func.value)
            if name in ("abs", "sqrt", "asarray", "ascontiguousarray", "sorted", "sign") and args:
                yield ast.unparse(args[0])
            for k in range(len(keywords)):
                kept = [w for j, w in enumerate(keywords) if j != k]
                yield ast.unparse(ast.Call(func=func, args=args, keywords=kept))
            names = len(args) == 2 and all(isinstance(a, ast.Name | ast.Attribute) for a in args)
            if names and name not in SYMMETRIC:
                yield ast.unparse(ast.Call(func=func, args=args[::-1], keywords=keywords))


def main() -> None:
    """Writes the list as JSON."""
    draw = random.Random(0)
    parts: dict[str, list[dict]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name in SKIPPED:
            continue
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found = candidates(path)
        draw.shuffle(found)
        # A few of every file, so that no long one crowds out the others.
        for _, line, changed in found[: 3 + len(found) // 12]:
            parts.setdefault(part, []).append({
                "file": path.relative_to(ROOT).as_posix(), "line": line.strip(),
                "change": changed.strip(), "tests": TESTS.get(part, OTHERS),
            })  # fmt: skip
    slips = []
    for part, found in sorted(parts.items()):
        draw.shuffle(found)
        slips += found[: QUOTA.get(part, OTHER_QUOTA)]
    json.dump(slips, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
