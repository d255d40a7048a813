"""A parser for each file format, chosen by the file extension. Unknown extensions are read as plain text."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePath
from typing import Any, TypeAlias

from lxml.etree import LxmlError

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument, Syntax
from conspectus.sources.files.html import markdown_title, read_html, rst_title
from conspectus.sources.files.zip_xml import Extract
from conspectus.sources.json_values import text_in, word_in
from conspectus.sources.subtitles.caption_import import captions
from conspectus.sources.subtitles.json_captions import is_captions
from conspectus.sources.subtitles.ttml import is_ttml

TICKS = re.compile(r"`{3,}")
COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f]")
VISIBLE_TYPES = ("text/markdown", "text/plain")


def notebook_text(text: str) -> str:
    """Return the cells of a notebook as Markdown. Raises ValueError for an invalid notebook."""
    try:
        value = json.loads(text, parse_constant=str)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    cells = _cells(value)
    if cells is None:
        raise ValueError("it has no cells")
    language = _language(value)
    blocks = (block for cell in cells if isinstance(cell, Mapping) for block in _blocks(cell, language))
    return UNSTORABLE.sub("\ufffd", "\n\n".join(filter(None, blocks)))


def _cells(value: object) -> Sequence[Any] | None:
    """Return the cells of a notebook in format 4, or in an older one."""
    if not isinstance(value, Mapping):
        return None
    sheets = value.get("worksheets")
    inner = [_cells(sheet) or () for sheet in sheets] if isinstance(sheets, list) else []
    cells = value.get("cells")
    if isinstance(cells, list):
        return cells
    return [cell for sheet in inner for cell in sheet] if inner else None


def _language(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(part) if isinstance(metadata, Mapping) else None
        language = inner.get(name) if isinstance(inner, Mapping) else None
        if isinstance(language, str) and re.fullmatch(r"[\w+#.-]{1,40}", language):
            return language
    return ""


def _blocks(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input"))).strip("\n")
    kind = cell.get("cell_type")
    if kind == "code":
        yield _fenced(source, language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, Mapping):
                yield _fenced(COLOURS.sub("", _output(output)).strip("\n"), "")
    elif kind == "heading":
        level = cell.get("level")
        yield "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + " " + source
    else:
        yield source


def _output(output: Mapping[str, Any]) -> str:
    """Return the text of an output: printed text, a value, or an error."""
    data = output.get("data")
    if isinstance(data, Mapping):
        return next((text for name in VISIBLE_TYPES if (text := _joined(data.get(name)))), "")
    if "ename" in output:
        return f"{output['ename']}: {output.get('evalue', '')}"
    return _joined(output.get("text"))


def _fenced(text: str, language: str) -> str:
    """Return text in a code fence that does not occur in it."""
    if not text.strip():
        return ""
    fence = "`" * max((len(ticks) + 1 for ticks in TICKS.findall(text)), default=3)
    return f"{fence}{language}\n{text}\n{fence}"


def _joined(value: object) -> str:
    """Return the text of a field that is a string or a list of strings."""
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))


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
TITLE_LENGTH = 300
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


def parse_text(text: str, *, name: str, path: str) -> Parsed:
    """Return the documents of a decoded file, and a notice. Raises UnreadableFile."""
    if not text.strip():
        return (), "the file is empty"
    kind = media_type(name)
    try:
        documents, notice = READERS.get(kind, _code if _is_code(name) else _plain)(text, name)
    except (ValueError, LxmlError) as error:
        raise UnreadableFile(name, f"not valid {kind}: {error}") from None
    facts = {"path": path, "media_type": kind}
    return tuple(replace(one, metadata=_with_facts(one.metadata, facts)) for one in documents), notice


def extracted(extract: Extract, *, name: str, path: str) -> Parsed:
    """Return the document of a file in a binary format."""
    if not extract.text.strip():
        return (), extract.notice or "the document has no text"
    document = replace(
        _page(extract.text, name, title=extract.title, syntax=extract.syntax),
        kind="message" if extract.media_type == "message/rfc822" else "page",
        metadata=_with_facts(extract.metadata, {"path": path, "media_type": extract.media_type}),
        author=extract.author,
        occurred=extract.occurred,
        places=extract.places,
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


def _titled(syntax: Syntax, title_of: Callable[[str], str]) -> Reader:
    """Return the reader of a format whose text is the document."""
    return lambda text, name: ((_page(text, name, title=title_of(text), syntax=syntax),), None)


_markdown = _titled("markdown", markdown_title)
_code = _titled("code", lambda _: "")


def _html(text: str, name: str) -> Parsed:
    page = read_html(text)
    if not page.text:
        return (), "the page has no text"
    return (_page(page.text, name, title=page.title, syntax="markdown"),), page.notice


def _json(text: str, name: str) -> Parsed:
    if is_captions(text):
        return _captions(text, name)
    documents, notice = json_documents(text, name)
    if documents:
        return documents, notice
    return (_page(text, name, syntax="code"),), "no text field found; the file is one document"


def _notebook(text: str, name: str) -> Parsed:
    markdown = notebook_text(text)
    if not markdown.strip():
        return (), "the notebook is empty"
    return _markdown(markdown, name)


def _json_lines(text: str, name: str) -> Parsed:
    documents, notice = json_lines_documents(text, name)
    if not documents:
        raise UnreadableFile(name, f"no valid line: {notice}")
    return documents, notice


def _captions(text: str, name: str) -> Parsed:
    documents, notice = captions(text, name, PurePath(name).stem)
    return documents, notice or (None if documents else "the file has no captions")


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


def _is_code(name: str) -> bool:
    return _suffix(name) in CODE or PurePath(name).name.lower() in CODE_NAMES


READERS: Mapping[str, Reader] = {
    "text/markdown": _markdown, "text/x-rst": _titled("rst", rst_title), "text/html": _html,
    "application/json": _json,
    "application/x-ipynb+json": _notebook, "application/jsonl": _json_lines,
    "application/x-subrip": _captions, "text/vtt": _captions, "text/x-ssa": _captions,
    "text/x-sbv": _captions, "application/x-sami": _captions, "application/ttml+xml": _captions,
    "text/x-scc": _captions,
    "text/xml": lambda text, name: (_captions if is_ttml(text) else _plain)(text, name),
}  # fmt: skip


TEXT_FIELDS = ("text", "content", "body", "message")
ID_FIELDS = ("id", "_id", "key")
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
NAMED = 5


@dataclass(slots=True)
class _Rows:
    """The documents so far, the keys in use, and the records without text."""

    documents: list[NewDocument] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    bad: list[str] = field(default_factory=list)

    def take(self, value: object, name: str, unit: str, number: int) -> None:
        document = _document(value, f"{name}#", number)
        if document is None:
            self.bad.append(f"{unit} {number} has no text")
            return
        key = document.key or ""
        while key in self.keys:
            key = f"{key}~{number}"
        self.keys.add(key)
        self.documents.append(replace(document, key=key))

    def result(self) -> tuple[tuple[NewDocument, ...], str | None]:
        more = f" and {len(self.bad) - NAMED} more" if len(self.bad) > NAMED else ""
        return tuple(self.documents), "; ".join(self.bad[:NAMED]) + more or None


def json_documents(text: str, name: str) -> tuple[tuple[NewDocument, ...], str | None]:
    """Return the documents of an array or of one object. Raises ValueError for text that is not JSON."""
    value = _load(text)
    rows = _Rows()
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            rows.take(item, name, "item", number)
    else:
        rows.take(value, name, "object", 1)
    return rows.result()


def json_lines_documents(text: str, name: str) -> tuple[tuple[NewDocument, ...], str | None]:
    """Return the documents of the lines. Only a newline ends one. Invalid lines are reported."""
    rows = _Rows()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.take(_load(line), name, "line", number)
        except ValueError as error:
            rows.bad.append(f"line {number} is not JSON ({error})")
    return rows.result()


def _load(text: str) -> object:
    try:
        return _storable(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


def _storable(value: object) -> object:
    """Return the value without characters that no store can hold: zero characters and lone surrogates."""
    match value:
        case str():
            return UNSTORABLE.sub("\ufffd", value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {UNSTORABLE.sub("\ufffd", key): _storable(item) for key, item in value.items()}
        case float() if value in {float("inf"), float("-inf")}:
            raise ValueError("a number is out of range")
        case _:
            return value


def _document(value: object, prefix: str, number: int) -> NewDocument | None:
    if isinstance(value, str):
        return NewDocument(value, key=f"{prefix}{number}") if value.strip() else None
    if not isinstance(value, Mapping):
        return None
    used = next((name for name in TEXT_FIELDS if text_in(value, name)), None)
    if used is None:
        return None
    title = value.get("title")
    named = isinstance(title, str)
    identifier = word_in(value, *ID_FIELDS) or number
    spent = {used, "title"} if named else {used}
    return NewDocument(
        value[used],
        title=str(title) if named else "",
        key=f"{prefix}{identifier}",
        metadata={name: item for name, item in value.items() if name not in spent},
    )
