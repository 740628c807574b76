"""Docstrings of the house as reStructuredText: one line, the formula, parameters, cost, reference.

They are written to be read in a terminal: formulas in plain characters, `names` in single
backticks, sections as numpydoc has them, but with `name : what it is` in place of a type, which
the signature has. Here plain characters become subscripts, Greek letters and norm bars, names
become links, and types are taken from the signature.
"""

import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from public_api import MODULES

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_GREEK = dict(
    alpha="α", beta="β", gamma="γ", delta="δ", epsilon="ε", eps="ε", eta="η", theta="θ", kappa="κ",
    mu="μ", rho="ρ", sigma="σ", tau="τ", phi="φ",
)  # fmt: skip
_SIGNS = [
    (r"\|\|(.+?)\|\|", r"‖\1‖"),
    (r"<([^<>=]*?,[^<>=]*?)>", r"⟨\1⟩"),
    (r"<=", "≤"), (r">=", "≥"), (r"!=", "≠"), (r"<->", "↔"), (r"->", "→"), (r"<-", "←"),
    (r"\+-", "±"), (r"\bsqrt\(", "√("), (r"\bgrad (?=[fQ]\b|f_)", "∇"), (r"\bsum_(?=\w)", "∑_"),
    (r"\binf\b(?!_)", "∞"), (r"(?<=\S) \* (?=\S)", " · "),
    (r"\b(" + "|".join(_GREEK) + r")(?=\b|_)", lambda m: _GREEK[m[1]]),
]  # fmt: skip
#: One letter, or a word, with an index; or what stands behind a norm, a power or a bracket.
_INDEX = re.compile(
    r"(?<![\w`])([A-Za-zα-ω∇∑])_(\{[^}]*\}|\d+|[A-Za-z]{1,2}(?!\w)|∞)"
    r"|(?<![\w`])([a-z]{2,6})_(\{[^}]*\}|[ijtkpn](?!\w))"
    "|([‖\x01])_(\\{[^}]*\\}|\\w+|∞)"
)
_POWER = re.compile(r"\^(\{[^}]*\}|\([^()]*\)|-?[\w./]+|∞)")
_NAME = re.compile(r"`([^`]+)`")
_SECTION = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
_FROM = r"~?(?:\w+\.)*"  # autodoc's signatures say where a type is from
_ALIASES = [
    (
        rf"{_FROM}ndarray\[tuple\[{_FROM}Any, \.\.\.\], {_FROM}dtype\[[^][]*(?:\[[^][]*\])?\]\]",
        "Array",
    ),
    (rf"{_FROM}NDArray\[{_FROM}Any\]", "Array"),
    (r"(?<== )_SEED\b", "0"),
]
#: Names that `...` may mean, filled by the extension that lists the reference pages.
TARGETS: dict[str, str] = {}
#: The module whose docstring is being read, last.
NEAR = ["adafw"]


def formulas(text: str) -> str:
    """Plain characters as signs, subscripts and superscripts of reStructuredText."""
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    raised: list[str] = []

    def role(name: str, content: str) -> str:
        raised.append(rf"\ :{name}:`{_escape(content.strip('{}'))}`\ ")
        return f"\x00{len(raised) - 1}\x00"

    text = _POWER.sub(lambda m: role("sup", m[1]) + "\x01", text)
    text = _INDEX.sub(lambda m: (m[1] or m[3] or m[5]) + role("sub", m[2] or m[4] or m[6]), text)
    text = _escape(text.replace("\x01", ""))
    return re.sub("\x00(\\d+)\x00", lambda m: raised[int(m[1])], text)


def _escape(text: str) -> str:
    return re.sub(r"([\\*`_|])", r"\\\1", text)


def target_of(name: str) -> str | None:
    """The page that a name means, in the module at hand before all others."""
    return TARGETS.get(f"{NEAR[-1]}.{name}") or TARGETS.get(name)


def inline(text: str) -> str:
    """A line of prose: names in backticks as code or links, the rest as formulas."""
    parts = _NAME.split(text)
    out = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            out.append(formulas(part))
        else:
            target = target_of(part.removesuffix("()"))
            code = f":py:obj:`{part} <{target}>`" if target else f"``{part}``"
            # Code must not touch letters before or after it: the separator takes no space.
            out.append(rf"\ {code}\ ")
    return "".join(out)


def paragraphs(text: str) -> Iterator[str]:
    """Prose, lists and blocks of code, each kept as what it is."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if lines[0].lstrip().startswith(">>>"):
            yield block
        elif all(line.startswith("    ") for line in lines):
            yield "::\n\n" + block
        elif re.match(r"[*-] ", lines[0]):
            items = re.split(r"\n(?=[*-] )", block)
            yield "\n".join(f"* {inline(' '.join(item[2:].split()))}" for item in items)
        else:
            yield inline(" ".join(line.strip() for line in lines))


def entries(text: str) -> list[tuple[list[str], str]]:
    """(names, what they are) of a section of parameters or attributes."""
    found: list[tuple[list[str], str]] = []
    waiting: list[str] = []
    for item in re.split(r"\n(?=\S)", text.strip("\n")):
        head, colon, rest = item.partition(" : ")
        if not colon:  # names that go on in the next line
            waiting += _names(head)
            continue
        found.append((waiting + _names(head), " ".join(rest.split())))
        waiting = []
    if waiting:
        found.append((waiting, ""))
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def types_of(thing: Any) -> dict[str, str]:
    """Parameter -> its type, as the signature has it."""
    try:
        given = inspect.signature(thing)
    except (ValueError, TypeError):
        return {}
    found = {}
    for name, parameter in given.parameters.items():
        note = parameter.annotation
        text = note if isinstance(note, str) else inspect.formatannotation(note)
        text = "" if note in (parameter.empty, Any) else re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
        text = shortened(text)
        found[name] = text
    return found


def shortened(text: str) -> str:
    """Types by the names that the sources give them, defaults as their values."""
    for pattern, name in _ALIASES:
        text = re.sub(pattern, name, text)
    return text


def section(title: str, text: str, types: dict[str, str]) -> str:
    """Parameters and attributes as a list of definitions, everything else as prose."""
    head = f".. rubric:: {title}\n\n"
    if title not in ("Parameters", "Attributes", "Returns", "Raises"):
        return head + "\n\n".join(paragraphs(text))
    out = []
    for names, what in entries(text):
        shown = ", ".join(f"``{name}``" for name in names)
        kinds = dict.fromkeys(types[name] for name in names if types.get(name))
        kind = f" : ``{next(iter(kinds))}``" if len(kinds) == 1 else ""
        out.append(f"{shown}{kind}\n    {inline(what) or '...'}")
    return head + "\n".join(out)


def to_rst(text: str, thing: Any) -> str:
    """The whole docstring."""
    pieces = _SECTION.split(inspect.cleandoc(text))
    out = list(paragraphs(pieces[0])) if pieces[0].strip() else []
    types = types_of(thing)
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        main, *rest = re.split(r"\n\n(?=\S)", body.strip("\n"))
        if title in ("Parameters", "Attributes"):
            out.append(section(title, main, types))
            out += [p for more in rest for p in paragraphs(more)]
        else:
            out.append(section(title, body, types))
    return "\n\n".join(out)


def process(
    app: "Sphinx", what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """autodoc's event: the lines of a docstring, changed in place."""
    if name.startswith("adafw") and lines:
        NEAR[-1] = next((m for m in sorted(MODULES, key=len)[::-1] if name.startswith(m)), "adafw")
        lines[:] = [*to_rst("\n".join(lines), thing).splitlines(), ""]


def process_signature(
    app: "Sphinx", what: str, name: str, thing: Any, options: Any, given: Any, result: Any
) -> tuple[str | None, str | None]:
    """autodoc's event: the text of a signature."""
    return given and shortened(given), result and shortened(result)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Registers the conversion."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", process_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
