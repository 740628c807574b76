"""One sentence a line in Markdown: a change of a sentence is then a change of a line.

    python tools/sentences.py            # which files are not so (also: make lint)
    python tools/sentences.py --write    # reflow them (also: make format)

Code, tables, headings, formulas and what scripts write between <!-- x: begin --> and
<!-- x: end --> stay as they are.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^\s*(```|~~~|:::|\$\$)")
ITEM = re.compile(r"^(\s*)([*+-]|\d+\.)(\s+)(?=\S)")
ALONE = re.compile(r"^\s*(#|\||<|>|\[[^]]+\]:|---|\*\*\*|!\[|\[!\[)")
#: A stop, what may close behind it, a space, and what a sentence may begin with.
STOP = re.compile(r"(?<=[.!?])([)*\"'`\]”’_]*) +(?=[A-Z0-9`*\[(\"“_$'‘])")
SHORT = re.compile(
    r"(?:\b(?:e\.g|i\.e|al|cf|vs|Fig|No|no|Sec|approx|resp|etc|Eq|St)|\b[A-Z])\.[)*\"']*$"
)


def files() -> list[Path]:
    """All Markdown that people write."""
    made = ("_build", "gallery", "api")
    docs = [p for p in (ROOT / "docs").rglob("*.md") if not set(p.parts) & set(made)]
    return sorted([*ROOT.glob("*.md"), *docs])


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph; a stop inside code or behind an initial ends none."""
    kept: list[str] = []

    def hide(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"`\x00{len(kept) - 1}\x00`"

    hidden = re.sub(r"`[^`]+`", hide, text)
    out = [""]
    for piece in re.split(r"(?<=\x01)", STOP.sub(lambda m: m[1] + "\x01", hidden)):
        out[-1] += piece.rstrip("\x01")
        if piece.endswith("\x01"):
            if SHORT.search(out[-1]):
                out[-1] += " "
            else:
                out.append("")
    return [re.sub("`\x00(\\d+)\x00`", lambda m: kept[int(m[1])], s) for s in out if s]


def reflow(text: str) -> str:
    """The same Markdown with one sentence a line."""
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    """Paragraphs and items reflowed, everything else as it is."""
    waiting: list[str] = []
    head = rest = ""

    def flush() -> Iterator[str]:
        if waiting:
            for i, sentence in enumerate(sentences(" ".join(waiting))):
                yield (rest if i else head) + sentence
            waiting.clear()

    until = ""
    for line in lines:
        if until:  # inside a fence or a part that a script writes
            yield line
            if line.strip() == until or (until == "$$" and line.rstrip().endswith("$$")):
                until = ""
            continue
        fence, mark = FENCE.match(line), re.match(r"<!-- ([\w-]+): begin -->", line)
        if fence or mark:
            yield from flush()
            yield line
            once = fence and fence[1] == "$$" and line.rstrip().endswith("$$") and len(line) > 2
            until = (
                "" if once else fence[1] if fence else f"<!-- {mark[1]}: end -->" if mark else ""
            )
        elif not line.strip() or ALONE.match(line):
            yield from flush()
            yield line
        elif item := ITEM.match(line):
            yield from flush()
            head = item[0]
            rest = " " * len(head)
            waiting.append(line[len(head) :].strip())
        elif waiting:
            waiting.append(line.strip())
        elif line.startswith("    "):  # code by its indentation
            yield line
        else:
            head = rest = re.match(r"\s*", line)[0]  # type: ignore[index]
            waiting.append(line.strip())
    yield from flush()


def main() -> None:
    """Reflows, or says what is not one sentence a line."""
    wrong = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        if (new := reflow(text)) != text:
            wrong.append(path.relative_to(ROOT).as_posix())
            if "--write" in sys.argv[1:]:
                path.write_text(new, encoding="utf-8")
    if wrong and "--write" not in sys.argv[1:]:
        sys.exit(f"not one sentence a line, run `make format`: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
