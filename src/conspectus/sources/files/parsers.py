"""A parser for each file format, chosen by the file extension. Unknown extensions are read as plain text."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TypeAlias

from lxml.etree import LxmlError

from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument, Syntax
from conspectus.sources.files.delimited import DELIMITERS, read_delimited_table
from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.feeds import feed_documents, is_feed
from conspectus.sources.files.file_properties import declared_authors, declared_language, language_metadata
from conspectus.sources.files.html import FRONT, markdown_title, read_html, rst_title
from conspectus.sources.files.json_documents import json_documents, json_lines_documents
from conspectus.sources.files.markdown_tables import render_html_tables
from conspectus.sources.files.notebooks import read_notebook
from conspectus.sources.subtitles.json_captions import is_captions
from conspectus.sources.subtitles.ttml import is_ttml

Parsed: TypeAlias = tuple[tuple[NewDocument, ...], str | None]
Reader: TypeAlias = Callable[[str, str], Parsed]

MEDIA_TYPES: Mapping[str, str] = {
    ".md": "text/markdown", ".markdown": "text/markdown", ".mdx": "text/markdown", ".rst": "text/x-rst",
    ".rest": "text/x-rst", ".html": "text/html", ".htm": "text/html", ".xhtml": "text/html",
    ".json": "application/json", ".jsonl": "application/jsonl", ".ndjson": "application/jsonl",
    ".ipynb": "application/x-ipynb+json",
    ".srt": "application/x-subrip", ".vtt": "text/vtt", ".ass": "text/x-ssa", ".ssa": "text/x-ssa",
    ".sbv": "text/x-sbv", ".smi": "application/x-sami", ".sami": "application/x-sami",
    ".ttml": "application/ttml+xml", ".dfxp": "application/ttml+xml", ".scc": "text/x-scc",
    ".json3": "application/json", ".csv": "text/csv",
    ".tsv": "text/tab-separated-values", ".xml": "text/xml", ".rss": "text/xml", ".atom": "text/xml",
}  # fmt: skip
CAPTION_TYPES = frozenset(
    {
        "application/x-subrip",
        "text/vtt",
        "text/x-ssa",
        "text/x-sbv",
        "application/x-sami",
        "application/ttml+xml",
        "text/x-scc",
    }
)
"""Files of captions, whatever they contain."""
MAIL_TYPES = frozenset({"message/rfc822", "application/vnd.ms-outlook"})
CONTAINER_TYPES = MAIL_TYPES | {"application/zip", "application/x-tar", "application/mbox"}
SHEET_SUFFIXES = frozenset({".xls", ".xlsx", ".xlsm", ".xlsb", ".ods"})
MAX_SNIFFED_CHARACTERS = 4_000
TITLE_LENGTH = 300
_PROPERTY = re.compile(r"^(?:authors?|lang(?:uage)?)[ \t]*:", re.MULTILINE)
_WEB_PAGE = re.compile(r"\s*(?:<!--[^>]*-->\s*)?<(?:!doctype\s+html|html|head|body|table)\b", re.IGNORECASE)
CODE_SUFFIXES = """
.asm .bash .bat .c .cc .cfg .clj .cljs .cmake .conf .cpp .cs .css .cue .cxx .d .dart .el .elm .erl .ex .exs
.f .f90 .fish .fs .fsx .go .gradle .graphql .groovy .h .hcl .hh .hpp .hrl .hs .hxx .ini .java .jl .js
.jsx .kt .kts .less .lisp .lua .m .mjs .mk .ml .mli .nim .nix .pas .php .pl .pm .proto .ps1 .py .pyi .pyx .r
.rb .rs .sass .scala .scm .scss .sh .sol .sql .svelte .swift .tcl .tex .tf .toml .ts .tsx .v .vb .vhd .vim
.vue .wat .yaml .yml .zig .zsh
"""
CODE = frozenset(CODE_SUFFIXES.split())
CODE_NAMES = frozenset({"dockerfile", "makefile", "cmakelists.txt", "jenkinsfile", "rakefile", "gemfile"})


def is_known(name: str) -> bool:
    """Return whether the name is that of a known text format."""
    return _suffix(name) in MEDIA_TYPES or _suffix(name) == ".txt" or _is_code(name)


def media_type(name: str) -> str:
    """Return the media type of a file name."""
    suffix = _suffix(name)
    plain = f"text/x-{suffix[1:] or 'source'}" if _is_code(name) else "text/plain"
    return MEDIA_TYPES.get(suffix, plain)


def media_type_of_text(text: str, name: str) -> str:
    """Return the media type of a text: that of its name, or where that tells nothing, of its beginning."""
    is_sheet = _suffix(name) in SHEET_SUFFIXES
    if (is_sheet or not is_known(name)) and _WEB_PAGE.match(text[:MAX_SNIFFED_CHARACTERS]):
        return "text/html"
    return "text/csv" if is_sheet else media_type(name)


def is_caption_file(text: str, name: str) -> bool:
    """Return whether a file holds subtitles or captions, by its name, or by its content as JSON or XML."""
    kind = media_type(name)
    if kind == "application/json":
        return is_captions(text)
    return kind in CAPTION_TYPES or (kind == "text/xml" and is_ttml(text))


def parse_text(text: str, *, name: str, path: str, kind: str = "") -> Parsed:
    """Return the documents of a decoded file, and a notice.

    Without a media type, it is that of the name. Raises UnreadableFile.
    """
    if not text.strip():
        return (), "the file is empty"
    kind = kind or media_type(name)
    try:
        documents, notice = READERS.get(kind, _code if _is_code(name) else _plain)(text, name)
    except (ValueError, LxmlError) as error:
        raise UnreadableFile(name, f"not valid {kind}: {error}") from None
    facts = {"path": path, "media_type": kind}
    return tuple(replace(one, metadata=_with_facts(one.metadata, facts)) for one in documents), notice


def documents_of_extract(extract: Extract, *, name: str, path: str) -> Parsed:
    """Return the document of a file in a binary format."""
    if not extract.text.strip():
        return (), extract.notice or (None if extract.members else "the document has no text")
    document = replace(
        _page(extract.text, name, title=extract.title, syntax=extract.syntax),
        kind="message" if extract.media_type in MAIL_TYPES else "page",
        metadata=_with_facts(extract.metadata, {"path": path, "media_type": extract.media_type}),
        author=extract.author,
        occurred=extract.occurred,
        thread=extract.thread,
        places=extract.places,
        read_by=extract.read_by,
    )
    return (document,), extract.notice


def _with_facts(fields: Mapping[str, object], facts: Mapping[str, object]) -> Mapping[str, object]:
    """Add metadata of the file to that of a record, renamed if both have the same name."""
    renamed = {f"record_{name}" if name in facts else name: value for name, value in fields.items()}
    return {**renamed, **facts}


def _page(text: str, name: str, *, title: str = "", syntax: Syntax = "plain") -> NewDocument:
    return NewDocument(text, title=title[:TITLE_LENGTH] or PurePath(name).name, key=name, syntax=syntax)


def _plain(text: str, name: str) -> Parsed:
    return (_page(text, name),), None


def _text_reader(syntax: Syntax, title_of: Callable[[str], str]) -> Reader:
    """Return the reader of a format whose text is the document."""
    return lambda text, name: ((_page(text, name, title=title_of(text), syntax=syntax),), None)


_code = _text_reader("code", lambda _: "")


def _markdown(text: str, name: str) -> Parsed:
    fields = _front_matter(text)
    document = replace(
        _page(render_html_tables(text), name, title=markdown_title(text), syntax="markdown"),
        author=declared_authors(fields),
        metadata=declared_language(fields),
    )
    return (document,), None


def _front_matter(text: str) -> Mapping[str, object]:
    """Return the fields of the front matter if it names authors or a language; else none."""
    front = FRONT.match(text)
    if front is None or not _PROPERTY.search(front[2]):
        return {}
    # PyYAML takes 30 ms to load, and most files do not need it.
    from conspectus.sources.files.front_matter import split_front_matter

    return split_front_matter(text)[0]


def _html(text: str, name: str) -> Parsed:
    page = read_html(text)
    if not page.text:
        return (), "the page has no text"
    document = replace(
        _page(page.text, name, title=page.title, syntax="markdown"),
        author=page.author,
        metadata=language_metadata([page.language]),
    )
    return (document,), page.notice


def _table_reader(delimiters: str) -> Reader:
    """Return the reader of a format whose text is a table, or else plain."""

    def read(text: str, name: str) -> Parsed:
        table = read_delimited_table(text, delimiters)
        if table is None:
            return _plain(text, name)
        return (_page(table.markdown, name, syntax="markdown"),), table.notice

    return read


def _json(text: str, name: str) -> Parsed:
    documents, notice = json_documents(text, name)
    if documents:
        return documents, notice
    return (_page(text, name, syntax="code"),), "no text field found; the file is one document"


def _xml(text: str, name: str) -> Parsed:
    if not is_feed(text):
        return _plain(text, name)
    try:
        documents = feed_documents(text, name)
    except Refused as refused:
        return _plain(text, name)[0], f"a feed that cannot be read: {refused}"
    return (documents, None) if documents else _plain(text, name)


def _notebook(text: str, name: str) -> Parsed:
    notebook = read_notebook(text)
    if not notebook.markdown.strip():
        return (), "the notebook is empty"
    [document], notice = _markdown(notebook.markdown, name)
    return (replace(document, author=declared_authors(notebook.metadata) or document.author),), notice


def _json_lines(text: str, name: str) -> Parsed:
    documents, notice = json_lines_documents(text, name)
    if not documents:
        raise UnreadableFile(name, f"no valid line: {notice}")
    return documents, notice


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


def _is_code(name: str) -> bool:
    return _suffix(name) in CODE or PurePath(name).name.lower() in CODE_NAMES


READERS: Mapping[str, Reader] = {
    "text/xml": _xml, "text/markdown": _markdown, "text/html": _html,
    "text/x-rst": _text_reader("rst", rst_title), "application/json": _json,
    "application/x-ipynb+json": _notebook, "application/jsonl": _json_lines,
    "text/csv": _table_reader(DELIMITERS), "text/tab-separated-values": _table_reader("\t"),
}  # fmt: skip
