"""What Sphinx wrote, made fit for the server: no inline code, no link that leads nowhere, compressed."""

import gzip
import hashlib
import re
from functools import cache
from html import unescape
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

COMPRESSIBLE: Final = {".css", ".html", ".js", ".json", ".svg", ".txt"}
UNUSED: Final = {".buildinfo", "objects.inv", "file.png", "plus.png", "minus.png"}
"""Files of Sphinx that no page uses."""
INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
ATTRIBUTE: Final = re.compile(r'(?<=\s)(href|src|id)="([^"]*)"')
STYLED: Final = re.compile(r'(?<=\s)style="([^"]*)"')


class Page:
    """The links and the anchors of a page; Sphinx writes no other quotes, and escapes those of texts."""

    def __init__(self, html: str) -> None:
        attributes = [(name, unescape(text)) for name, text in ATTRIBUTE.findall(html)]
        self.links = [text for name, text in attributes if name != "id"]
        self.anchors = {"", "top", *(text for name, text in attributes if name == "id")}


def find_broken_links(folder: Path) -> list[str]:
    """Return the links of all pages, each with its page, to files or anchors that do not exist."""
    parsed = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    broken = []
    for path, page in parsed.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if re.match(r"[a-z]+:", address):
                continue
            target = _find_linked_file(path.parent, address) if address else path
            other = None if target is None else parsed.get(target)
            if target is None or (other and unquote(anchor) not in other.anchors):
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken


@cache
def _find_linked_file(folder: Path, address: str) -> Path | None:
    """Return the file that a page of a folder links to; None if there is none."""
    target = (folder / unquote(address.partition("?")[0])).resolve()
    return target if target.is_file() else None


def write_compressed(html_folder: Path, target: Path) -> None:
    """Write the files compressed, with scripts and styles in files of their own."""
    styles: dict[str, str] = {}
    inline: dict[str, str] = {}
    for path in sorted(html_folder.rglob("*")):
        if not path.is_file() or path.name in UNUSED or ".doctrees" in path.parts:
            continue
        body = path.read_bytes()
        name = path.relative_to(html_folder)
        if path.suffix == ".html":
            body = _move_inline_out(body.decode(), "../" * (len(name.parts) - 1), inline, styles).encode()
        _write(target / name, body)
    for style_name, text in inline.items():
        _write(target / "_static" / style_name, text.encode())
    rules = (f'[data-style="{key}"] {{ {rule} }}\n' for rule, key in sorted(styles.items()))
    _write(target / "_static" / "styles.css", "".join(rules).encode())
    _write(target / "licenses.txt", _read_licenses().encode())


def _move_inline_out(html: str, root: str, inline: dict[str, str], styles: dict[str, str]) -> str:
    """Return a page with links in place of its inline scripts and styles, which are collected."""

    def move_inline(match: re.Match[str]) -> str:
        kind, text = match.groups()
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"inline-{digest}.{'js' if kind == 'script' else 'css'}"
        inline[name] = text
        address = f"{root}_static/{name}"
        if kind == "style":
            return f'<link rel="stylesheet" href="{address}">'
        return f'<script src="{address}"></script>'

    def name_style(match: re.Match[str]) -> str:
        return f'data-style="{styles.setdefault(match[1], str(len(styles)))}"'

    html = STYLED.sub(name_style, INLINE.sub(move_inline, html))
    return html.replace("</head>", f'<link rel="stylesheet" href="{root}_static/styles.css"></head>', 1)


def _write(path: Path, body: bytes) -> None:
    """Write a file, compressed if its kind can be; the same input gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in COMPRESSIBLE:
        path = path.with_name(f"{path.name}.gz")
        body = gzip.compress(body, 9, mtime=0)
    path.write_bytes(body)


def _read_licenses() -> str:
    """Return the licences of the theme and of Sphinx, whose scripts and styles the site has."""
    texts = []
    for name in ("furo", "sphinx", "pygments"):
        files = distribution(name).files or []
        license_file = next(file for file in files if "license" in file.name.lower())
        texts.append(f"{name}\n{'=' * len(name)}\n\n{license_file.read_text()}")
    return "\n\n".join(texts)
