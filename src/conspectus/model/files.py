"""Documents as files: paths, and the results of `ls`, `cat`, `grep` and `find`.

A path is `/collection/source/key`. The slashes of a key make folders. A slash in the name of a collection or
source is written `%2F`, and a percent sign `%25`; control characters are escaped likewise.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypedDict
from urllib.parse import unquote

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.filter import EVERYTHING, DocumentFilter, Filter
from conspectus.model.ids import DocumentId
from conspectus.model.parameters import Name, PageLimit, StoredText, StoredTitle
from conspectus.model.trust import Trust, level_mark
from conspectus.model.validation import Validated

MAX_PATH: Final = 4_000
MAX_TITLE: Final = 200
FilePath = Annotated[str, "Path: /COLLECTION/SOURCE/KEY.", Example("/notes/handbook")]
FileGlob = Annotated[Name, "Glob of the file's name (*.md), or of the key (docs/*).", Example("*.md")]
_ESCAPED = re.compile(r"[%\x00-\x1f\x7f\x85\u2028\u2029]")
_ESCAPED_NAME = re.compile(r"[%/\x00-\x1f\x7f\x85\u2028\u2029]")


class PathParts(NamedTuple):
    """A parsed path. Without a collection it is the root, without a source a collection."""

    collection: str = ""
    source: str = ""
    key: str = ""


def path_of(collection: str, source: str = "", key: str = "") -> str:
    """Return the path of a collection, source or key."""
    names = [_ESCAPED_NAME.sub(_escape, part) for part in (collection, source) if part]
    return "/" + "/".join([*names, _ESCAPED.sub(_escape, key)] if key else names)


def parse_path(path: str) -> PathParts:
    """Parse a path. Raises InvalidInput."""
    if not path.startswith("/") or len(path) > MAX_PATH:
        raise InvalidInput("path", f"must be /COLLECTION/SOURCE/KEY, of at most {MAX_PATH} characters")
    collection, _, rest = path[1:].partition("/")
    source, _, key = rest.partition("/")
    if (not collection and rest) or (not source and key):
        raise InvalidInput(
            "path", "must be /COLLECTION/SOURCE/KEY; the name of a collection or source is empty"
        )
    return PathParts(*(unquote(part, errors="surrogateescape") for part in (collection, source, key)))


def expand_home(path: str | Path) -> Path:
    """Return a path of this machine with the home folder in place of `~`. Raises InvalidInput."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput("path", f"{str(path)!r} names no home folder; begin with ./ for a file") from None


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or a folder. The path of a folder ends with a slash; the other fields are those of a document.

    Collections and sources are folders. `kind` is that of the document or source.
    """

    path: Annotated[str, Example("/data/store")]
    folder: bool = False
    document: DocumentId | None = None
    title: StoredTitle = ""
    kind: str | None = None
    characters: int = 0
    updated: datetime | None = None
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class FilePage:
    """Files and folders by path; `next` is the cursor of the page after this one, if any."""

    entries: tuple[FileEntry, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines of a file: `text` is the document's text[start:end], with its lines from 1.

    `lines` and `characters` are those of the whole file, `tokens` those of `text`. `next` is the character at
    which to go on after a budget ended the text; None if all that was asked for is in it.
    """

    path: Annotated[str, Example("/data/store")]
    document: DocumentId
    title: StoredTitle
    text: StoredText
    start: int
    end: int
    first_line: int
    last_line: int
    lines: int
    characters: int
    tokens: int
    next: int | None = None
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line that matches, or one beside it: `text` is the document's text[start:end].

    Of a long line it has the part around the match.
    """

    number: int
    text: StoredText
    start: int
    end: int
    matched: bool = True


@dataclass(frozen=True, slots=True)
class FileMatches:
    """The matching lines of one file, with the lines around them."""

    path: Annotated[str, Example("/data/store")]
    document: DocumentId
    title: StoredTitle
    lines: tuple[FileLine, ...]
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class GrepResult:
    """Matching lines by file: first the files in which keyword search finds the words of the pattern, best
    first, then the others by path.

    `matches` counts the matching lines, `searched` the files that were read. Unless `complete`, more lines
    may match, and a notice says which limit ended the search. `tokens` is the size of `text`.
    """

    files: tuple[FileMatches, ...]
    matches: int
    searched: int
    complete: bool
    notices: tuple[str, ...] = ()
    tokens: int = 0

    @property
    def text(self) -> str:
        """The lines under the path of their file: `12:` is a match, `11-` a line beside it."""
        return "\n".join(line for file in self.files for line in _lines_shown(file))


def _lines_shown(file: FileMatches) -> Iterator[str]:
    title = " ".join(file.title.split())[:MAX_TITLE]
    path = f"{file.path}{level_mark(file.trust)}"
    yield f"{path} ({title})" if title else path
    gaps = {after.number for before, after in pairwise(file.lines) if after.number > before.number + 1}
    beside = any(not line.matched for line in file.lines)
    for line in file.lines:
        if beside and line.number in gaps:
            yield "--"
        yield f"{line.number}{':' if line.matched else '-'}{line.text}"


class GrepOptions(TypedDict, total=False):
    """The fields of a Grep besides `pattern` and `path`, as keyword arguments."""

    literal: bool
    ignore_case: bool
    context: int
    name: str | None
    filter: Filter
    limit: int
    max_tokens: int | None
    max_seconds: float


@dataclass(frozen=True, slots=True)
class Grep(Validated):
    """A search for lines.

    `pattern` is a regular expression with the syntax of RE2, which has no backreferences or lookarounds and
    takes linear time, or a `literal` text. `name` is a glob of file names, such as `*.md`; `context` the
    number of lines shown before and after a match. It ends after `limit` matching lines or `max_seconds`.
    """

    pattern: Annotated[str, Length(1, 1_000), "Regular expression (RE2) or text.", Example("backup")]
    path: FilePath = "/"
    literal: Annotated[bool, "The pattern is a text."] = False
    ignore_case: Annotated[bool, "Ignore case."] = False
    context: Annotated[int, Range(0, 20), "Lines before and after a match."] = 0
    name: FileGlob | None = None
    filter: DocumentFilter = EVERYTHING
    limit: Annotated[PageLimit, "Maximum number of matching lines."] = 100
    max_tokens: Annotated[int | None, Range(0), "Token limit of the text, counted with o200k_base."] = None
    max_seconds: Annotated[float, Range(0, 60), "Seconds after which the search ends."] = 10.0
