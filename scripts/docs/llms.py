"""The site for language models: an index of its pages (llms.txt), and all in one file (llms-full.txt)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

SECTIONS: Final = {
    "get-started": "Get started",
    "guides": "Guides",
    "concepts": "Concepts",
    "operate": "Operate",
    "reference": "Reference",
    "benchmarks": "Benchmarks",
    "adr": "Decisions",
}
"""The folders of pages in their order."""
HEAD: Final = """\
# Conspectus

> Conspectus finds, ranks, packs and explains context for language models: documents, team chats, video,
> tasks, memories and graphs, as a Python library, a command line, an HTTP server, an MCP server and an
> OpenAI-compatible proxy.
"""
NAVIGATION: Final = re.compile(r"^```\{toctree\}\n.*?^```\n?", re.MULTILINE | re.DOTALL)


def make_llms_texts(source: Path) -> dict[str, str]:
    """Return the texts of the two files by name, from the Markdown of the site."""
    pages = {
        path.relative_to(source).as_posix(): NAVIGATION.sub("", path.read_text(encoding="utf-8")).strip()
        for path in sorted(source.rglob("*.md"))
    }
    full = (f"<!-- {path} -->\n\n{text}\n" for path, text in _sort_pages(pages))
    return {"llms.txt": "".join(_list_pages(pages)), "llms-full.txt": "\n".join((HEAD, *full))}


def _list_pages(pages: Mapping[str, str]) -> Iterator[str]:
    yield HEAD
    last = ""
    for path, text in _sort_pages(pages):
        section = path.partition("/")[0]
        if section != last:
            yield f"\n## {SECTIONS[section]}\n\n"
            last = section
        title = text.partition("\n")[0].lstrip("# ")
        yield f"- [{title}]({path.removesuffix('.md')}.html)\n"
    yield "\n## Optional\n\n- [All pages in one file](llms-full.txt)\n"


def _sort_pages(pages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for section in SECTIONS:
        of_section = {path: text for path, text in pages.items() if path.startswith(f"{section}/")}
        yield from sorted(of_section.items(), key=lambda page: (not page[0].endswith("/index.md"), page[0]))
