"""Looks after every link of the built site that stays on it: file there, anchor there.

python tools/links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links, anchors and formulas of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects href, src, id and name; and what a browser would fetch from elsewhere."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)
                if tag != "a" and urlsplit(value).scheme in ("http", "https"):
                    self.fetched.append(value)


def check(root: Path) -> list[str]:
    """A sentence for each link that leads nowhere, and for each thing fetched from the network."""
    pages = {p.resolve(): Page(p.read_text(encoding="utf-8")) for p in root.rglob("*.html")}
    said = []
    for path, page in pages.items():
        where = path.relative_to(root.resolve()).as_posix()
        said += [f"{where} fetches {link}" for link in page.fetched]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                said.append(f"{where} links to {link}, which is not there")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                said.append(f"{where} links to {link}, whose anchor is not there")
    return sorted(set(said))


def main() -> None:
    """Ends with all sentences, or with how many pages are fine."""
    root = Path(sys.argv[1])
    if said := check(root):
        sys.exit("\n".join(said))
    print(f"{len(list(root.rglob('*.html')))} pages, no broken link")


if __name__ == "__main__":
    main()
