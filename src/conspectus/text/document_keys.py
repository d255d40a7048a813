"""Keys of documents' names: spellings of the same title, path, file name or number share a key."""

import re
from typing import Final

from conspectus.text.document_names import readable_key
from conspectus.text.late_patterns import re_pattern, regex_pattern
from conspectus.text.name_keys import key_of

MAX_NAME_BYTES: Final = 255
"""Longer names are not looked up."""
MAX_NAME_CHARACTERS: Final = 400
SERIES: Final = "versions of "
"""The beginning of the name that all versions of a document share."""

_MARKS: Final = regex_pattern(r"[^\p{L}\p{M}\p{N}]++")
_ZEROS: Final = re_pattern(r"\b0+(?=\d)")
_BORDER: Final = re_pattern(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_EXTENSION: Final = re_pattern(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_UNSPECIFIC: Final = frozenset({"index", "readme", "default", "home", "main"})
"""Names of files that say nothing without their folder."""
_IDENTIFIER: Final = re_pattern(r"([^\W\d_]{2,10}[ -]?\d{1,6})(?=\s*[:\u2013\u2014,(]|\s+-\s)")
"""A number such as `PEP 420` at the beginning of a title."""
_VERSION: Final = re_pattern(
    r"(?:[\s_.\-]|[\s_.\-]?\()(?:v|ver|version|rev|revision)[\s_.\-]?(\d{1,6}(?:[._]\d{1,6}){0,3})\)?"
    r"(?:[\s_.\-]+(?:draft|final))?\Z",
    re.IGNORECASE,
)
"""A version at the end of a name: `-v2`, `_v0.2.1_draft`, ` (version 3)`."""


def document_key(name: str) -> str:
    """Normalize a name of a document; empty for one without letters and digits, or longer than 255 bytes.

    Case, accents, punctuation and leading zeros do not count: `PEP-0420`, `pep0420` and `PEP 420` share one.
    """
    spaced = _BORDER.sub(" ", _MARKS.sub(" ", key_of(name[:MAX_NAME_CHARACTERS])))
    key = _ZEROS.sub("", " ".join(spaced.split()))
    return key if len(key.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES else ""


def path_key(path: str) -> str:
    """Return the key of the last part of a path or address, without its extension.

    A file such as `index.md` is named after its folder.
    """
    parts = [part for part in re.split(r"[/\\]+", path.split("#")[0].split("?")[0]) if part not in {"", "."}]
    if not parts:
        return ""
    stem = _EXTENSION.sub("", parts[-1])
    if stem.casefold() in _UNSPECIFIC and len(parts) > 1:
        stem = f"{parts[-2]} {stem}"
    return document_key(stem)


def names_of(title: str, key: str) -> tuple[str, ...]:
    """Return the distinct keys of the names of a document: its file name, path, title and number.

    A document with a version at the end of its name also has the name of the series.
    """
    path = readable_key(key)
    names = [path_key(path), document_key(_EXTENSION.sub("", path)), document_key(title)]
    if number := _IDENTIFIER.match(title):
        names.append(document_key(number[1]))
    if version := version_of(title, key):
        names.append(version[0])
    return tuple(filter(None, dict.fromkeys(names)))


def version_of(title: str, key: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the name of the series and the version of a document, if its path or title ends with one."""
    for name in (_EXTENSION.sub("", readable_key(key)), title.strip()):
        version = _VERSION.search(name[-MAX_NAME_CHARACTERS:])
        series = document_key(name[: -len(version[0])]) if version else ""
        if version and series:
            numbers = tuple(map(int, re.split(r"[._]", version[1])))
            return SERIES + series, numbers
    return None
