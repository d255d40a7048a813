"""Jupyter notebooks as Markdown."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conspectus.deferred import dataclass
from conspectus.sources.files.json_documents import UNSTORABLE

TICKS = re.compile(r"`{3,}")
COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f]")
VISIBLE_TYPES = ("text/markdown", "text/plain")


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of a notebook as Markdown, and its metadata, as they are in the file."""

    markdown: str
    metadata: Mapping[str, Any]


def read_notebook(text: str) -> Notebook:
    """Return a notebook. Raises ValueError for an invalid one."""
    try:
        value = json.loads(text, parse_constant=str)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    cells = _cells(value)
    if cells is None:
        raise ValueError("it has no cells")
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    language = _language(metadata)
    blocks = (block for cell in cells if isinstance(cell, Mapping) for block in _blocks(cell, language))
    return Notebook(UNSTORABLE.sub("\ufffd", "\n\n".join(filter(None, blocks))), metadata)


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


def _language(metadata: Mapping[str, Any]) -> str:
    """Return the programming language of the cells; empty if the metadata name none."""
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(part)
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
