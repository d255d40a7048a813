"""Select the chunks that fit into the budget: plan with estimates, render, count and plan again."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property

from conspectus.deferred import dataclass
from conspectus.model.results import CachePlan, Hit
from conspectus.text.hashing import content_hash
from conspectus.window.cost_estimate import MIN_TEXT, Estimator
from conspectus.window.counting import Part, RenderingCounter
from conspectus.window.passages import (
    Gaps,
    Layout,
    SelectedChunk,
    Threads,
    WindowPassage,
    group_key,
    grouped,
    in_reading_order,
    is_streamed,
    joined,
    stretch,
    worth,
)
from conspectus.window.render import Rendered, Renderer

WORTH_FILLING = 24
FIRST_STEP = 16
"""Tokens by which a budget is made larger at first to find one that holds a candidate."""
_MAX_CUTS_TRIED = 16


@dataclass(slots=True)
class Refusal:
    """The reason why a candidate is not in the window.

    It is blank, has the same text as rank `same_as`, or a `share` of its text is that of the document of rank
    `near`; it was `swapped` for other candidates, is not `needed` beside the previous window, or needs more
    tokens than were left.
    """

    same_as: int | None = None
    near: int | None = None
    share: float = 0.0
    blank: bool = False
    swapped: bool = False
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
        self.voice = _voice(hit)
        self.same = (hit.chunk.content_hash, self.voice)
        day = document.occurred.start.date() if document.occurred else None
        self.line = (group_key(document), document.title, day)

    @cached_property
    def words(self) -> Sequence[str]:
        """The words of its text, in order."""
        return self.hit.chunk.text.split()

    @cached_property
    def runs(self) -> Sequence[tuple[str, ...]]:
        """The runs of four words in its text."""
        words = self.words
        return list(zip(words, words[1:], words[2:], words[3:], strict=False))

    @cached_property
    def distinct_runs(self) -> frozenset[tuple[str, ...]]:
        """The same runs, each once; comparing two such sets computes no hash again."""
        return frozenset(self.runs)

    @cached_property
    def spaced(self) -> str:
        """The words of its text, joined by single spaces."""
        return f" {' '.join(self.words)} "


@dataclass(slots=True)
class WindowPlan:
    """The selected chunks by rank with estimated costs, and the reasons for rejecting the others.

    `kept` are the ranks of those that stand where they stood in the previous window.
    """

    pieces: dict[int, SelectedChunk] = field(default_factory=dict)
    costs: dict[int, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    kept: frozenset[int] = frozenset()

    def unused(self, room: int) -> int:
        """Return the tokens of a budget that the plan leaves, by its estimates."""
        return max(room - sum(self.costs.values()), 0)

    def holds(self, rank: int) -> bool:
        """Return whether the whole text of a rank is selected."""
        return rank in self.pieces and not self.pieces[rank].cut

    @property
    def complete(self) -> bool:
        """Whether all candidates fit."""
        cut = any(piece.cut for piece in self.pieces.values())
        return not cut and not any(refusal.for_want_of_room for refusal in self.refused.values())


@dataclass(frozen=True, slots=True)
class Swap:
    """Keeps the ranks in `keep`, and gives the tokens of the ranks in `out` to the best other candidates."""

    keep: frozenset[int]
    out: int


class Planner:
    """Selects chunks for a number of tokens by estimates. One planner makes one plan.

    A remainder below `worth` tokens stays unused. Up to `spare` tokens may be wasted for a better border of a
    truncated text.
    """

    def __init__(self, costs: Estimator, room: int, *, gaps: Gaps, worth: int, spare: int) -> None:
        self._costs = costs
        self._gaps = gaps
        self._room = room
        self._worth = worth
        self._spare = spare
        self._plan = WindowPlan()
        self._spans: dict[str, Spans] = {}
        self._beside: set[tuple[object, ...]] = set()
        self._shown = SeenTexts()

    def plan(self, candidates: Sequence[Candidate], swap: Swap | None = None) -> WindowPlan:
        """Select each hit that fits, then truncate one of the others to the tokens left."""
        others = sorted(candidates[1:], key=lambda each: -worth(each.hit, self._room))
        reserved = self._reserve(candidates[0])
        self._room -= reserved
        for candidate in [candidates[0], *others]:
            rank = candidate.rank
            if rank == 0 and reserved:
                self._plan.refused[rank] = Refusal(needs=self._price(candidate), left=self._room + reserved)
                self._shown.add(candidate, whole=False)
            elif swap is not None and rank == swap.out:
                self._plan.refused[rank] = Refusal(swapped=True)
            else:
                self._consider(candidate, closed=swap is not None and rank not in swap.keep)
        self._room += reserved
        self._fill(candidates)
        return self._plan

    def _reserve(self, candidate: Candidate) -> int:
        if self._price(candidate) <= self._room:
            return 0
        best = candidate.hit
        around = self._head(candidate) + self._costs.cut_mark
        text = max(WORTH_FILLING, self._room * 3 // 4 if best.document.kind == "page" else self._room // 3)
        start, stop = self._costs.part(best, 0, tokens=text, spare=self._spare)
        return min(self._room, around + text) if start < stop else self._room

    def _consider(self, candidate: Candidate, *, closed: bool) -> None:
        rank, hit = candidate.rank, candidate.hit
        same_as = self._shown.rank_of(candidate)
        if same_as is not None or candidate.blank:
            self._plan.refused[rank] = Refusal(same_as=same_as, blank=candidate.blank)
            return
        alone = hit.document.id not in self._spans
        price = self._costs.least(hit)
        if not alone or price <= self._room:
            price = self._price(candidate)
        if closed or price > self._room:
            self._plan.refused[rank] = Refusal(needs=price, left=0 if closed else self._room)
            return
        near = self._shown.near(candidate)
        if near is not None:
            self._plan.refused[rank] = near
            return
        self._take(candidate, SelectedChunk(rank, hit, 0, len(hit.chunk.text)), price)
        self._shown.add(candidate)

    def _take(self, candidate: Candidate, piece: SelectedChunk, price: int) -> None:
        document, chunk = piece.hit.document, piece.hit.chunk
        self._plan.pieces[piece.rank] = piece
        self._plan.costs[piece.rank] = max(price, 0)
        self._room -= price
        spans = self._spans.get(document.id)
        if spans is None:
            self._spans[document.id] = Spans([piece.begins], [chunk.start + piece.stop])
        else:
            spans.add(piece.begins, chunk.start + piece.stop)
        self._beside.add(candidate.line)
        self._gaps.show(document)

    def _price(self, candidate: Candidate) -> int:
        chunk, spans = candidate.hit.chunk, self._spans.get(candidate.hit.document.id)
        text = self._costs.text(candidate.hit)
        if spans is not None and chunk.text:
            text = -(-text * spans.fresh(chunk.start, chunk.end) // len(chunk.text))
        return self._head(candidate) + text

    def _head(self, candidate: Candidate) -> int:
        hit = candidate.hit
        spans = self._spans.get(hit.document.id)
        if spans is None:
            gaps = self._gaps.added_by(hit.document)
            marks = gaps * self._costs.left_out if gaps else 0
            return self._costs.head(hit, beside=candidate.line in self._beside) + marks
        near = spans.near(hit.chunk.start, hit.chunk.end)
        return 0 if near.start < near.stop else self._costs.gap(hit)

    def _fill(self, candidates: Sequence[Candidate]) -> None:
        refused = self._plan.refused.items()
        skipped = [rank for rank, why in refused if why.for_want_of_room and not why.swapped]
        for rank in skipped[:_MAX_CUTS_TRIED]:
            if self._room < self._worth:
                return
            near = self._shown.near(candidates[rank])
            if near is not None:
                self._plan.refused[rank] = near
            elif self._cut(candidates[rank]):
                del self._plan.refused[rank]
                if self._plan.pieces[rank].cut:
                    return

    def _cut(self, candidate: Candidate) -> bool:
        hit = candidate.hit
        chunk, spans = hit.chunk, self._spans.get(hit.document.id)
        tokens = self._room - self._head(candidate) - self._costs.cut_mark
        if tokens < MIN_TEXT:
            return False
        covered = spans.covered_until(chunk.start) - chunk.start if spans else 0
        start, stop = self._costs.part(hit, covered, tokens=tokens, spare=self._spare)
        if not chunk.text[start:stop].strip():
            return False
        piece = SelectedChunk(candidate.rank, hit, start if start > covered else 0, stop)
        self._take(candidate, piece, self._room if piece.cut else min(self._room, self._price(candidate)))
        return True


_MAX_RENDERS = 8
_MAX_SWAPS = 4
_FULL = 0.95
_MIN_FILL = 200


@dataclass(frozen=True, slots=True)
class Beginning:
    """The groups at the beginning of a window that are given, with their tokens as a window."""

    pieces: tuple[Sequence[SelectedChunk], ...] = ()
    layout: Layout = ()
    parts: tuple[Part, ...] = ()
    tokens: int = 0

    @property
    def next_number(self) -> int:
        """The number of the passage after them."""
        return 1 + sum(map(len, self.layout))


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan that fits, arranged, rendered and counted; `pieces` and `parts` are those of its groups."""

    plan: WindowPlan
    layout: Layout
    rendered: Rendered
    tokens: int
    pieces: tuple[Sequence[SelectedChunk], ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def worth(self) -> tuple[bool, int]:
        """The quality of a plan: first whether it has the best hit, then its tokens."""
        return (0 in self.plan.pieces, self.tokens)

    @property
    def state(self) -> str:
        """Its chunks by group, in reading order, each group after a digest of its rendering."""
        return ";".join(
            f"{digest(part.text)}:{','.join(map(_named, in_reading_order(pieces)))}"
            for part, pieces in zip(self.parts, self.pieces, strict=True)
        )


DIGEST = 12
"""The characters of a digest."""


def digest(text: str) -> str:
    """Return a short digest of the rendering of a group."""
    return content_hash(text)[:DIGEST]


def _named(piece: SelectedChunk) -> str:
    span = f".{piece.start}.{piece.stop}" if piece.cut else ""
    return f"{piece.hit.chunk.id}{span}"


@dataclass(frozen=True, slots=True)
class Made:
    """A packed window with all of its candidates, and its cache plan if there is a previous window."""

    packed: Packed
    hits: Sequence[Hit]
    plan: CachePlan | None = None


@dataclass(frozen=True, slots=True)
class Packing:
    """How a window is packed and counted.

    `estimator` makes the cost estimate from a sample. The omitted messages of `threads` are counted and
    marked; the marks use tokens.
    """

    renderer: Renderer
    count: RenderingCounter
    estimator: Callable[[Hit], Estimator]
    threads: Threads

    def pack(self, hits: Sequence[Hit], beginning: Beginning) -> Callable[[int], Packed]:
        """Return a function that packs the best hits into so many tokens of rendered text, at most.

        Hits that fit are added, best first, after the groups of the beginning. The first hit that does not
        fit is truncated to the tokens left. The best hit is never dropped for others. If it is too large, it
        is truncated to at least three quarters of the budget (a message to a third), and the others share the
        rest.
        """
        if not hits:
            return lambda _: _nothing(hits, beginning, self.renderer)
        candidates = [Candidate(rank, hit) for rank, hit in enumerate(hits)]
        how = self.renderer, self.count, self.estimator(hits[0]), self.threads, beginning
        return lambda allowed: _pack(_Packer(candidates, allowed, *how))


def _pack(packer: "_Packer") -> Packed:
    allowed = packer.allowed
    if allowed <= 0:
        return packer.nothing
    best = packer.fit()
    if allowed < _MIN_FILL or best.plan.complete or packer.is_full(best):
        return best
    kept = sorted(best.plan.pieces)
    swaps = (Swap(frozenset(kept) - {out}, out) for out in reversed(kept[1:][-_MAX_SWAPS:]))
    full = filter(packer.is_full, map(packer.fit, swaps))
    return next((packed for packed in full if packed.worth > best.worth), best)


def fits_from(rank: int, allowed: int, plan: Callable[[int], WindowPlan]) -> int | None:
    """Find tokens above `allowed` with which the whole candidate is in the plan, and with one less is not.

    None if it is in no plan, for instance because it has the same text as a better one. Needs a plan in which
    it is not whole for `allowed` tokens, and looks at no more than 2 log2 of the tokens that all take.
    """
    low, step = allowed, FIRST_STEP
    while not plan(low + step).holds(rank):
        if plan(low + step).complete:
            return None
        low, step = low + step, 2 * step
    return bisect_left(range(low + step), True, lo=low + 1, key=lambda tokens: plan(tokens).holds(rank))


@dataclass(frozen=True, slots=True)
class _Packer:
    candidates: Sequence[Candidate]
    allowed: int
    renderer: Renderer
    count: RenderingCounter
    costs: Estimator
    threads: Threads
    begins: Beginning
    groups: dict[tuple[object, ...], tuple[tuple[WindowPassage, ...], Part]] = field(default_factory=dict)

    def fit(self, swap: Swap | None = None) -> Packed:
        """Plan with estimates, count the rendered text, and plan again with a corrected budget."""
        best: Packed | None = None
        fits, fails = 0, 2 * self.allowed + 1
        room = self.allowed - (self.begins.tokens or self.costs.frame)
        for attempt in range(_MAX_RENDERS):
            packed = self._packed(room, swap)
            slack = self.allowed - packed.tokens
            if slack >= 0 and (best is None or packed.worth > best.worth):
                best = packed
            if slack >= 0 and (packed.plan.complete or slack <= self._tolerance):
                break
            fits, fails = (max(fits, room), fails) if slack >= 0 else (fits, min(fails, room))
            if fails - fits <= 1:
                break
            wanted = room + (slack if slack >= 0 else min(slack - packed.plan.unused(room), -(1 << attempt)))
            room = wanted if fits < wanted < fails else (fits + fails) // 2
        while best is None and room > 0:
            room = min(room, fails) // 2
            packed = self._packed(room, swap)
            best = packed if packed.tokens <= self.allowed else None
        return best or self.nothing

    @property
    def nothing(self) -> Packed:
        """A window without any of the candidates."""
        return _nothing(self.candidates, self.begins, self.renderer)

    def is_full(self, packed: Packed) -> bool:
        """Return whether the plan uses enough of the budget."""
        return packed.tokens >= _FULL * self.allowed

    @property
    def _tolerance(self) -> int:
        return max(1, self.allowed // 64)

    def _packed(self, room: int, swap: Swap | None) -> Packed:
        worth = min(WORTH_FILLING, 1 + self.allowed // 20)
        spare = self.allowed // (40 if self.allowed >= _MIN_FILL else 8)
        gaps = Gaps(self.threads)
        planner = Planner(self.costs, max(room, 0), gaps=gaps, worth=worth, spare=spare)
        plan = planner.plan(self.candidates, swap)
        begins = self.begins
        layout, groups, number = [*begins.layout], [*begins.parts], begins.next_number
        grouping = tuple(grouped(plan.pieces.values()))
        for pieces in grouping:
            passages, group = self._group(pieces, number)
            layout.append(passages)
            groups.append(group)
            number += len(passages)
        rendered = self.renderer.whole([group.text for group in groups])
        tokens = self.count.tokens(rendered, groups)
        return Packed(
            plan, tuple(layout), rendered, tokens, pieces=(*begins.pieces, *grouping), parts=tuple(groups)
        )

    def _group(self, pieces: Sequence[SelectedChunk], number: int) -> tuple[tuple[WindowPassage, ...], Part]:
        """Return the rendering of a group, cached for plans that have the group at the same position."""
        key = (number, *((piece.rank, piece.start, piece.stop) for piece in pieces))
        if key not in self.groups:
            passages = joined(pieces, number, self.threads)
            chunks = tuple(piece.hit.chunk for piece in pieces)
            self.groups[key] = passages, Part(self.renderer.group(passages), chunks)
        return self.groups[key]


def _nothing(hits: Sequence[object], begins: Beginning, renderer: Renderer) -> Packed:
    plan = WindowPlan(refused=dict.fromkeys(range(len(hits)), Refusal()))
    rendered = renderer.whole([part.text for part in begins.parts])
    return Packed(plan, begins.layout, rendered, begins.tokens, pieces=begins.pieces, parts=begins.parts)


NEAR = 0.9
"""The least share of the runs of a text in another document with which it is nearly the same."""
_NEAR_WORDS = 20
_EVERY = 8


@dataclass(slots=True)
class _Voice:
    """The shown texts of one author or moment by rank, all their words, and all texts in one."""

    shown: dict[int, Candidate] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    text: str = ""

    def may_have_nearly(self, candidate: Candidate) -> bool:
        """Return whether nearly all runs of a text may be in one of these, looking at few of them."""
        some = candidate.words[::_EVERY]
        if sum(map(self.words.__contains__, some)) < NEAR * len(some):
            return False
        runs = candidate.runs
        more_than_may_lack = runs[: int((1.0 - NEAR) * len(runs)) + 2]
        return any(f" {' '.join(run)} " in self.text for run in more_than_may_lack)


class SeenTexts:
    """Finds texts that the window already contains.

    A text is a duplicate if it equals a shown text, or if a shown text contains its words without
    interruption. A page is nearly one if nearly all runs of its words are in another page. Messages are
    compared only with messages of the same author, captions and events only with those of the same time.
    """

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, str], int] = {}
        self._voices: dict[str, _Voice] = defaultdict(_Voice)

    def rank_of(self, candidate: Candidate) -> int | None:
        """Return the rank of the shown text that contains the text of a hit."""
        same = self._hashes.get(candidate.same)
        if same is not None or candidate.blank:
            return same
        voice = self._voices[candidate.voice]
        if not voice.words.issuperset(candidate.words):
            return None
        return next((rank for rank, each in voice.shown.items() if candidate.spaced in each.spaced), None)

    def near(self, candidate: Candidate) -> Refusal | None:
        """Return a refusal if nearly all runs of a page are in the shown texts of one other page.

        Words with digits must all be there, and short texts are never nearly the same.
        """
        words, voice = candidate.words, self._voices[candidate.voice]
        if candidate.hit.document.kind != "page" or len(words) < _NEAR_WORDS:
            return None
        if not voice.may_have_nearly(candidate):
            return None
        copies: dict[str, list[Candidate]] = defaultdict(list)
        for each in voice.shown.values():
            other = each.hit.document
            if other.kind == "page" and other.id != candidate.hit.document.id:
                copies[other.id].append(each)
        own, every = candidate.distinct_runs, len(candidate.runs)
        for shown in copies.values():
            missing = own.difference(*(each.distinct_runs for each in shown))
            if every - len(missing) < NEAR * every:
                continue
            share = (every - sum(map(missing.__contains__, candidate.runs))) / every
            if share >= NEAR and not _numbers(set(words).difference(*(each.words for each in shown))):
                best = max(shown, key=lambda each: len(own & each.distinct_runs))
                return Refusal(near=best.rank, share=share)
        return None

    def add(self, candidate: Candidate, *, whole: bool = True) -> None:
        """Add a shown text. Of a truncated text, only the hash is added."""
        self._hashes.setdefault(candidate.same, candidate.rank)
        if whole:
            voice = self._voices[candidate.voice]
            voice.shown[candidate.rank] = candidate
            voice.words.update(candidate.words)
            voice.text += candidate.spaced


def _numbers(words: Iterable[str]) -> bool:
    return any(any(map(str.isdigit, word)) for word in words)


def _voice(hit: Hit) -> str:
    document = hit.document
    if is_streamed(document):
        return " ".join((document.source, stretch(document), document.author or ""))
    return "" if document.kind in {"page", "task"} else document.author or document.role or ""


@dataclass(slots=True)
class Spans:
    """A set of half-open spans, ascending, that neither overlap nor touch."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def near(self, start: int, end: int) -> slice:
        """Return the spans that overlap or touch [start, end)."""
        first = bisect_left(self.ends, start)
        last = first
        while last < len(self.starts) and self.starts[last] <= end:
            last += 1
        return slice(first, last)

    def fresh(self, start: int, end: int) -> int:
        """Return the number of characters of [start, end) that no span covers."""
        near = self.near(start, end)
        covered = zip(self.starts[near], self.ends[near], strict=True)
        return end - start - sum(min(e, end) - max(s, start) for s, e in covered)

    def covered_until(self, start: int) -> int:
        """Return the end of the span that covers or touches a position, or else the position."""
        index = bisect_left(self.ends, start)
        inside = index < len(self.starts) and self.starts[index] <= start
        return self.ends[index] if inside else start

    def add(self, start: int, end: int) -> None:
        """Add a span and merge it with spans that it overlaps or touches."""
        near = self.near(start, end)
        if near.start < near.stop:
            start, end = min(start, self.starts[near.start]), max(end, self.ends[near.stop - 1])
        self.starts[near] = [start]
        self.ends[near] = [end]
