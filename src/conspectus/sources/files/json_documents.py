"""Documents in JSON and JSON Lines."""

import json
import re
from collections.abc import Mapping
from dataclasses import field, replace

from conspectus.deferred import dataclass
from conspectus.model.records import NewDocument
from conspectus.sources.json_values import text_in, word_in

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
