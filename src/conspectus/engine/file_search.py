"""The search of lines: which files are searched, and which lines are shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from time import monotonic
from typing import Final

from conspectus.deferred import dataclass
from conspectus.engine.file_texts import fits_budget
from conspectus.errors import InvalidInput
from conspectus.model.files import FileLine, FileMatches, Grep, GrepResult
from conspectus.model.filter import Filter, document_row, matches, require_document_fields
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document
from conspectus.ports import CountTokens
from conspectus.text.counts import format_count
from conspectus.text.lines import LinePattern, MatchedLine, find_shown_part

MAX_GLOB_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class FileSelection:
    """A selection of files by a glob of their name and a filter."""

    name: str | None
    filter: Filter

    def __post_init__(self) -> None:
        """Check that the filter can match documents."""
        require_document_fields(self.filter)

    def has(self, document: Document) -> bool:
        """Return whether a document is in the selection."""
        return self._fits(document.key) and matches(self.filter, document_row(document))

    def _fits(self, key: str) -> bool:
        if self.name is None:
            return True
        return fnmatchcase(key if "/" in self.name else key.rpartition("/")[2], self.name)


class Scan:
    """A search of texts for a pattern, which stops at its limit of lines or of seconds."""

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        self._lines = LinePattern(grep.pattern, literal=grep.literal, ignore_case=grep.ignore_case)
        self._selection = FileSelection(require_glob(grep.name), grep.filter)
        self._end = monotonic() + grep.max_seconds
        self._seen: set[DocumentId] = set()
        self._files: list[FileMatches] = []
        self._matches = 0
        self._searched = 0
        self._notice = ""

    @property
    def stopped(self) -> bool:
        """Whether a limit was reached."""
        return bool(self._notice)

    def select_unseen(self, documents: Sequence[Document]) -> Sequence[Document]:
        """Return the selected documents that were not searched yet."""
        unseen = [
            document
            for document in documents
            if document.id not in self._seen and self._selection.has(document)
        ]
        self._seen.update(document.id for document in unseen)
        return unseen

    def select_matching(
        self, documents: Sequence[Document], texts: Mapping[DocumentId, str]
    ) -> Sequence[Document]:
        """Return the documents with a line that matches, which are few enough to ask a remote for."""
        return [document for document in documents if self._has_match(texts.get(document.id, ""))]

    def _has_match(self, text: str) -> bool:
        """Return whether a line of a text matches; no if the time is over before that."""
        for line in self._lines.matches(text):
            if line is not None:
                return True
            if monotonic() >= self._end:
                return False
        return False

    def run(self, files: Sequence[tuple[str, Document]], texts: Mapping[DocumentId, str]) -> None:
        """Search the texts of documents, given with their paths."""
        for path, document in files:
            if self.stopped:
                return
            self._searched += 1
            text = texts.get(document.id, "")
            matched_lines = list(self._match_lines(text))
            if matched_lines:
                lines = tuple(_with_context(text, matched_lines, self._grep.context))
                self._files.append(FileMatches(path, document.id, document.title, lines, document.trust))

    def _match_lines(self, text: str) -> Iterator[MatchedLine]:
        for line in self._lines.matches(text):
            if line is None:
                if monotonic() >= self._end:
                    self._notice = f"the search ended after {self._grep.max_seconds:g} seconds"
                    return
            elif self._matches == self._grep.limit:
                self._notice = (
                    f"the search ended after {format_count(self._matches, 'line')};"
                    " use a narrower pattern or path"
                )
                return
            else:
                self._matches += 1
                yield line

    @property
    def characters(self) -> int:
        """Number of characters of the matching lines."""
        return sum(len(line.text) for file in self._files for line in file.lines)

    def result(self, count: CountTokens) -> GrepResult:
        """Return the matching lines that fit into the token budget."""
        notices = (self._notice,) if self._notice else ()
        full = GrepResult(tuple(self._files), self._matches, self._searched, not notices, notices)
        limit = self._grep.max_tokens
        if limit is None or fits_budget(full.text, limit, count):
            return replace(full, tokens=count(full.text))
        # The largest number of lines that fit, by bisection.
        low, high = 0, sum(len(file.lines) for file in self._files)
        while low < high:
            middle = (low + high + 1) // 2
            fits = fits_budget(_with_first_lines(full, middle).text, limit, count)
            low, high = (middle, high) if fits else (low, middle - 1)
        cut = _with_first_lines(full, low)
        shown = sum(line.matched for file in cut.files for line in file.lines)
        budget_notice = (
            f"left out: {full.matches - shown} of {format_count(full.matches, 'line')}; raise max_tokens"
        )
        all_notices = (*notices, budget_notice)
        return replace(cut, complete=False, notices=all_notices, tokens=count(cut.text))


def _with_first_lines(result: GrepResult, number: int) -> GrepResult:
    """Return a result with only its first lines."""
    files: list[FileMatches] = []
    for file in result.files:
        if number <= 0:
            break
        files.append(replace(file, lines=file.lines[:number]))
        number -= len(file.lines)
    return replace(result, files=tuple(files))


def _with_context(text: str, matched_lines: Sequence[MatchedLine], context: int) -> Iterator[FileLine]:
    """Yield matching lines with the lines around them, each once."""
    last, matching = 0, {match.number for match in matched_lines}
    for match in matched_lines:
        for line in (*_lines_beside(text, match, -context), match, *_lines_beside(text, match, context)):
            if line.number > last and (line is match or line.number not in matching):
                start, end = find_shown_part(line)
                yield FileLine(line.number, text[start:end], start, end, line is match)
                last = line.number


def _lines_beside(text: str, line: MatchedLine, context: int) -> Sequence[MatchedLine]:
    """Return lines before a line, or after it, in order."""
    neighbors: list[MatchedLine] = []
    number, start, end = line.number, line.start, line.end
    for _ in range(abs(context)):
        if context < 0 and start > 0:
            number, start, end = number - 1, text.rfind("\n", 0, start - 1) + 1, start - 1
        elif context > 0 and end + 1 < len(text):
            number, start, end = number + 1, end + 1, text.find("\n", end + 1)
            end = len(text) if end < 0 else end
        else:
            break
        neighbors.append(MatchedLine(number, start, end, start))
    return neighbors[::-1] if context < 0 else neighbors


def require_glob(name: str | None) -> str | None:
    """Return the glob of a file name. Raises InvalidInput for an empty one, and for one that is too long."""
    if name is not None and not 0 < len(name) <= MAX_GLOB_CHARACTERS:
        raise InvalidInput("name", f"must have 1 to {MAX_GLOB_CHARACTERS} characters")
    return name
