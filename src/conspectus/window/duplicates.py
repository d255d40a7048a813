"""Candidates of a window, and the search for texts that the window already contains."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.results import Hit
from conspectus.window.passages import group_key
from conspectus.window.stream_times import is_streamed, time_range

MIN_SHARE: Final = 0.9
"""The least share of the runs of a text in another document with which it is nearly the same."""
MIN_WORDS: Final = 20
"""Shorter texts are never nearly the same."""
SAMPLE_STEP: Final = 8
Run: TypeAlias = str
"""Four words, join_passages by spaces; the collector of garbage has nothing to do with so many strings."""


@dataclass(slots=True)
class Refusal:
    """The reason why a candidate is not in the window.

    It is blank, has the same text as rank `same_as`, or a `share` of its text is that of the document of rank
    `near`; it is not shown `without` the document that supersedes its own; it was `swapped` for other
    candidates, is not `needed` beside the previous window, or needs more tokens than were left.
    """

    same_as: int | None = None
    near: int | None = None
    share: float = 0.0
    blank: bool = False
    swapped: bool = False
    without: str = ""
    needed: bool = True
    needs: int = 0
    left: int = 0

    @property
    def for_want_of_room(self) -> bool:
        """Whether a larger budget would include the candidate."""
        return self.same_as is None and self.near is None and not self.blank


class Candidate:
    """A hit by rank, with cached values that every plan uses."""

    def __init__(self, rank: int, hit: Hit) -> None:
        document = hit.document
        self.rank = rank
        self.hit = hit
        self.blank = not hit.chunk.text.strip()
        self.author = author_key(hit)
        self.same = (hit.chunk.content_hash, self.author)
        day = document.occurred.start.date() if document.occurred else None
        self.line = (group_key(document), document.title, day)
        self.successors = frozenset(successor.document for successor in hit.superseded_by)

    @cached_property
    def words(self) -> Sequence[str]:
        """The words of its text, in order."""
        return self.hit.chunk.text.split()

    @cached_property
    def runs(self) -> Sequence[Run]:
        """The runs of four words in its text."""
        words = self.words
        return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], strict=False)))

    @cached_property
    def distinct_runs(self) -> frozenset[Run]:
        """The same runs, each once; comparing two such sets computes no hash again."""
        return frozenset(self.runs)

    @cached_property
    def more_runs_than_may_lack(self) -> frozenset[Run]:
        """So many of its distinct runs, or all, that a text with nearly all of its runs has one of them."""
        lacking = int((1.0 - MIN_SHARE) * len(self.runs)) + 2
        return frozenset(islice(dict.fromkeys(self.runs), lacking))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The words of its text that have a digit."""
        return frozenset(word for word in self.words if any(map(str.isdigit, word)))

    @cached_property
    def spaced(self) -> str:
        """The words of its text, join_passages by single spaces."""
        return f" {' '.join(self.words)} "


def author_key(hit: Hit) -> str:
    """Return the author or the moment of a hit; texts of different ones are never compared."""
    document = hit.document
    if is_streamed(document):
        return " ".join((document.source, time_range(document), document.author or ""))
    if document.kind in {"page", "task"}:
        return ""
    return document.author or document.role or ""


@dataclass(slots=True)
class AuthorTexts:
    """The texts in the window of one author or moment, by rank, and an index of their words and runs.

    The runs are indexed when a text is compared with them, as few texts are.
    """

    by_rank: dict[int, Candidate] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    pages: dict[str, list[Candidate]] = field(default_factory=dict)
    """The pages among them by document."""
    _runs: set[Run] = field(default_factory=set)
    _unindexed: list[Candidate] = field(default_factory=list)

    def add(self, candidate: Candidate) -> None:
        """Add a text."""
        self.by_rank[candidate.rank] = candidate
        self.words.update(candidate.words)
        self._unindexed.append(candidate)
        if candidate.hit.document.kind == "page":
            self.pages.setdefault(candidate.hit.document.id, []).append(candidate)

    @property
    def runs(self) -> set[Run]:
        """The runs of all texts."""
        for candidate in self._unindexed:
            self._runs.update(candidate.distinct_runs)
        self._unindexed.clear()
        return self._runs

    def rank_containing(self, candidate: Candidate) -> int | None:
        """Return the rank of the first text that contains the words of a candidate without interruption."""
        if not self.words.issuperset(candidate.words) or not self.runs.issuperset(candidate.distinct_runs):
            return None
        return next((rank for rank, other in self.by_rank.items() if candidate.spaced in other.spaced), None)

    def may_nearly_contain(self, candidate: Candidate) -> bool:
        """Return whether nearly all runs and all numbers of a page are in these texts, all taken together."""
        sample = candidate.words[::SAMPLE_STEP]
        if sum(map(self.words.__contains__, sample)) < MIN_SHARE * len(sample):
            return False
        missing, runs = len(candidate.distinct_runs - self.runs), len(candidate.runs)
        return runs - missing >= MIN_SHARE * runs and self.words.issuperset(candidate.numbers)

    def similar_pages(self, candidate: Candidate) -> Iterator[Sequence[Candidate]]:
        """Yield the texts of other documents that may have nearly all runs of a page, in their order."""
        runs, document_id = candidate.more_runs_than_may_lack, candidate.hit.document.id
        for document, texts in self.pages.items():
            if document != document_id and not all(runs.isdisjoint(text.distinct_runs) for text in texts):
                yield texts


class SeenTexts:
    """Finds texts that the window already contains.

    A text is a duplicate if it equals a shown text, or if a shown text contains its words without
    interruption. A page is nearly one if nearly all runs of its words are in another page. Messages are
    compared only with messages of the same author, captions and events only with those of the same time.
    """

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, str], int] = {}
        self._by_author: dict[str, AuthorTexts] = defaultdict(AuthorTexts)

    def rank_of(self, candidate: Candidate) -> int | None:
        """Return the rank of the shown text that contains the text of a hit."""
        same = self._hashes.get(candidate.same)
        if same is not None or candidate.blank:
            return same
        return self._by_author[candidate.author].rank_containing(candidate)

    def find_near_duplicate(self, candidate: Candidate) -> Refusal | None:
        """Return a refusal if nearly all runs of a page are in the shown texts of one other page.

        Words with digits must all be there, and short texts are never nearly the same.
        """
        texts = self._by_author[candidate.author]
        if candidate.hit.document.kind != "page" or len(candidate.words) < MIN_WORDS:
            return None
        if not texts.may_nearly_contain(candidate):
            return None
        similar = (_share_refused(candidate, page) for page in texts.similar_pages(candidate))
        return next(filter(None, similar), None)

    def add(self, candidate: Candidate, *, is_complete: bool = True) -> None:
        """Add a shown text. Of a truncated text, only the hash is added."""
        self._hashes.setdefault(candidate.same, candidate.rank)
        if is_complete:
            self._by_author[candidate.author].add(candidate)


def _share_refused(candidate: Candidate, page: Sequence[Candidate]) -> Refusal | None:
    """Return a refusal if the texts of a page have nearly all runs and all numbers of a candidate."""
    missing = candidate.distinct_runs.difference(*(text.distinct_runs for text in page))
    runs = len(candidate.runs)
    if runs - len(missing) < MIN_SHARE * runs:
        return None
    share = (runs - sum(map(missing.__contains__, candidate.runs))) / runs
    if share < MIN_SHARE or not candidate.numbers <= {word for text in page for word in text.words}:
        return None
    best = max(page, key=lambda text: len(candidate.distinct_runs & text.distinct_runs))
    return Refusal(near=best.rank, share=share)
