"""Windows that begin with the previous window, so that a model provider can cache the prompt.

What stood in the window stays byte for byte at its place, new passages are appended, removals are batched.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.records import StoredChunk
from conspectus.model.results import BreakReason, CacheBreak, CachePlan, Hit
from conspectus.window.counting import Part
from conspectus.window.duplicates import Candidate, Refusal, SeenTexts
from conspectus.window.packed_window import DIGEST_LENGTH, Beginning, Packed, WindowResult, digest
from conspectus.window.packer import Packing
from conspectus.window.passages import SelectedChunk, WindowPassage, in_reading_order, join_passages
from conspectus.window.planner import WindowPlan

MIN_NEEDED_SHARE: Final = 0.2
"""The share of a budget whose best hits a window must hold."""
MAX_FILLED_SHARE: Final = 0.5
"""The share of a budget up to which a window is filled with more hits."""
MIN_REMOVED_SHARE: Final = 0.05
"""The share of a budget that is cleared at once."""
MAX_CHUNKS: Final = 5_000
_CHUNK: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,9})\.(\d{1,9}))?")
_GROUP: Final = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}:{_CHUNK.pattern}(?:,{_CHUNK.pattern})*")


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Characters [start, stop) of a chunk; all without a stop."""

    chunk: int
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """The chunks of a group of the previous window, and a digest of its rendering."""

    digest: str
    spans: tuple[StoredSpan, ...]


@dataclass(frozen=True, slots=True)
class Previous:
    """The previous window as its state says, with those of its chunks that may be shown now.

    `state` comes from the caller and is not trusted: texts are in `hits` only, as they were read now.
    """

    groups: tuple[StoredGroup, ...]
    hits: Mapping[int, Hit] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    """Chunks that exist and may be read, but not by this query."""

    @property
    def chunks(self) -> list[int]:
        """The ids of its chunks, in order."""
        return [span.chunk for group in self.groups for span in group.spans]

    def with_chunks(
        self,
        rows: Sequence[StoredChunk],
        allowed: Callable[[StoredChunk], bool],
        prepare: Callable[[Hit], Hit],
    ) -> "Previous":
        """Return it with the chunks that `allowed` accepts, each as a prepared hit."""
        hits = {
            row.chunk.id: Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows if allowed(row)
        }
        return replace(
            self,
            hits={chunk: prepare(hit) for chunk, hit in hits.items()},
            hidden=frozenset(row.chunk.id for row in rows if row.chunk.id not in hits),
        )


def previous_of(state: str) -> Previous:
    """Read the state of a window. Raises InvalidInput."""
    if state.count(",") + state.count(";") >= MAX_CHUNKS:
        raise InvalidInput("previous", f"names more than {MAX_CHUNKS:,} chunks")
    groups = [_parse_group(text) for text in state.split(";") if state]
    seen: set[int] = set()
    for span in chain.from_iterable(group.spans for group in groups):
        if span.chunk in seen:
            raise InvalidInput("previous", f"names the chunk {span.chunk} twice")
        seen.add(span.chunk)
    return Previous(tuple(groups))


def _parse_group(text: str) -> StoredGroup:
    if not _GROUP.fullmatch(text):
        raise InvalidInput("previous", "is not the `state` of a window; pass `window.state`")
    digest, _, chunks = text.partition(":")
    return StoredGroup(digest, tuple(map(_parse_span, chunks.split(","))))


def _parse_span(text: str) -> StoredSpan:
    chunk, *span = map(int, text.split("."))
    return StoredSpan(chunk, *span)


def pack_after(previous: Previous, hits: Sequence[Hit], packing: Packing, allowed: int) -> WindowResult:
    """Pack a window that begins with those passages of the previous one that are still allowed.

    The best hits that fill MIN_NEEDED_SHARE of the budget are appended where they are missing, and more up to
    MAX_FILLED_SHARE of it. If they do not fit, chunks that no longer belong to these best hits are removed
    together, the last ones first, until MIN_REMOVED_SHARE of the budget is free: the window changes as late
    in its text as it can.

    Args:
        hits: the hits of the query, best first.
    """
    session = _Session(previous, hits, packing, allowed)
    beginning = session.keep_beginning()
    packed = session.pack_rest(beginning) if beginning.pieces else packing.pack(hits, beginning)(allowed)
    return WindowResult(packed, session.hits, _cache_plan(session, packed, packing))


class _Session:
    """The candidates of a window that begins with another one: the hits, and what else is kept."""

    def __init__(self, previous: Previous, hits: Sequence[Hit], packing: Packing, allowed: int) -> None:
        chunks = {hit.chunk.id for hit in hits}
        others = [
            previous.hits[chunk]
            for chunk in previous.chunks
            if chunk in previous.hits and chunk not in chunks
        ]
        self.previous = previous
        self.hits: Sequence[Hit] = [*hits, *others]
        self._query_hits = len(hits)
        self._packing = packing
        self._allowed = allowed
        self._ranks: dict[int, int] = {hit.chunk.id: rank for rank, hit in enumerate(self.hits)}
        self._estimator = packing.estimator(self.hits[0]) if self.hits else None
        self.groups = [list(in_reading_order(self._pieces(group))) for group in previous.groups]

    def _pieces(self, group: StoredGroup) -> list[SelectedChunk]:
        pieces = []
        for span in group.spans:
            hit = self.previous.hits.get(span.chunk)
            if hit is not None:
                length = len(hit.chunk.text)
                stop = length if span.stop is None else min(span.stop, length)
                pieces.append(SelectedChunk(self._ranks[span.chunk], hit, min(span.start, stop), stop))
        return [piece for piece in pieces if piece.hit.chunk.text[piece.start : piece.stop].strip()]

    def keep_beginning(self) -> Beginning:
        """The groups of the previous window that stay, after a batch of removals if room is needed."""
        needed, allowed = self._find_needed(), self._allowed
        present = {piece.rank for group in self.groups for piece in group}
        cost = sum(self._cost(self.hits[rank]) for rank in needed if rank not in present)
        beginning = self._render_beginning()
        missing = cost - (allowed - beginning.tokens)
        if missing > 0:
            self._remove(needed, max(missing, int(MIN_REMOVED_SHARE * allowed)))
            beginning = self._render_beginning()
        while beginning.tokens > allowed:
            self._remove(set(), beginning.tokens - allowed)
            beginning = self._render_beginning()
        self._forget_removed()
        return replace(beginning, pieces=tuple(filter(None, self.groups)))

    def _forget_removed(self) -> None:
        """Keep the hits of the query and those that stay, and number them anew."""
        present = {piece.rank for group in self.groups for piece in group}
        ranks = [rank for rank in range(len(self.hits)) if rank < self._query_hits or rank in present]
        new_ranks = {rank: new_rank for new_rank, rank in enumerate(ranks)}
        self.hits = [self.hits[rank] for rank in ranks]
        self.groups = [
            [replace(piece, rank=new_ranks[piece.rank]) for piece in group] for group in self.groups
        ]

    def pack_rest(self, beginning: Beginning) -> Packed:
        """Pack the missing ones of the best hits after the beginning."""
        pieces = {piece.rank: piece for group in beginning.pieces for piece in group}
        refused, new = self._select_missing(beginning, pieces)
        packed = self._packing.pack([self.hits[rank] for rank in new], beginning)(self._allowed)
        plan = WindowPlan(unmoved=frozenset(pieces))
        plan.pieces |= pieces | {
            new[at]: replace(piece, rank=new[at]) for at, piece in packed.plan.pieces.items()
        }
        plan.costs |= {rank: self._cost(piece.hit) for rank, piece in pieces.items()}
        plan.costs |= {new[at]: cost for at, cost in packed.plan.costs.items()}
        plan.refused |= refused | {
            new[at]: _with_ranks(new, refusal) for at, refusal in packed.plan.refused.items()
        }
        return replace(packed, plan=plan)

    def _select_missing(
        self, beginning: Beginning, pieces: Mapping[int, SelectedChunk]
    ) -> tuple[dict[int, Refusal], list[int]]:
        """The ranks of the hits to append, and why the others are not."""
        seen, refused, new = SeenTexts(), dict[int, Refusal](), list[int]()
        for rank, piece in pieces.items():
            seen.add(Candidate(rank, piece.hit), is_complete=not piece.cut)
        needed, used = self._find_needed(), beginning.tokens
        for rank, hit in enumerate(self.hits[: self._query_hits]):
            if rank in pieces:
                continue
            refusal = _refuse_repeated(seen, Candidate(rank, hit))
            cost = self._cost(hit)
            if refusal is not None:
                refused[rank] = refusal
            elif rank in needed or used + cost <= MAX_FILLED_SHARE * self._allowed:
                new.append(rank)
                used += cost
            else:
                refused[rank] = Refusal(needed=False)
        return refused, new

    def _find_needed(self) -> set[int]:
        """The ranks of the hits that fill MIN_NEEDED_SHARE of the budget, and the best one in any case."""
        left, ranks = MIN_NEEDED_SHARE * self._allowed, set[int]()
        for rank, hit in enumerate(self.hits[: self._query_hits]):
            left -= self._cost(hit)
            if rank and left < 0:
                break
            ranks.add(rank)
        return ranks

    def _remove(self, needed: Iterable[int], tokens: int) -> None:
        """Remove chunks that are not needed, the last ones first, until so many tokens are free."""
        for group in reversed(self.groups):
            for piece in reversed(list(group)):
                if tokens <= 0:
                    return
                if piece.rank not in needed:
                    group.remove(piece)
                    tokens -= self._cost(piece.hit)

    def _render_beginning(self) -> Beginning:
        pieces = tuple(group for group in self.groups if group)
        layout: list[tuple[WindowPassage, ...]] = []
        number = 1
        for group in pieces:
            self._packing.checkpoint()
            layout.append(join_passages(group, number, self._packing.threads))
            number += len(layout[-1])
        parts = tuple(
            Part(self._packing.renderer.group(passages), tuple(piece.hit.chunk for piece in group))
            for passages, group in zip(layout, pieces, strict=True)
        )
        rendered = self._packing.renderer.render_window([part.text for part in parts])
        return Beginning(pieces, tuple(layout), parts, self._packing.count.tokens(rendered, parts))

    def _cost(self, hit: Hit) -> int:
        self._packing.checkpoint()
        estimator = self._estimator
        if estimator is None:
            return 0
        return estimator.head(hit, beside=True) + estimator.text(hit)


def _refuse_repeated(seen: SeenTexts, candidate: Candidate) -> Refusal | None:
    same = seen.rank_of(candidate)
    if same is not None or candidate.blank:
        return Refusal(same_as=same, blank=candidate.blank)
    return seen.find_near_duplicate(candidate)


def _with_ranks(ranks: Sequence[int], refusal: Refusal) -> Refusal:
    """Return a refusal with the ranks that these have among all candidates."""
    same, near = (None if rank is None else ranks[rank] for rank in (refusal.same_as, refusal.near))
    return replace(refusal, same_as=same, near=near)


def _cache_plan(session: _Session, packed: Packed, packing: Packing) -> CachePlan:
    """Return how many bytes of the previous window stand at the beginning of this one."""
    groups = session.previous.groups
    digests = [digest(part.text) for part in packed.parts]
    pairs = zip(digests, groups, strict=False)
    stable = next(
        (at for at, (now, then) in enumerate(pairs) if now != then.digest), min(len(digests), len(groups))
    )
    text = packed.rendered.text
    if not stable:
        beginning = ""
    elif stable == len(digests):
        beginning = text
    else:
        rendered = packing.renderer.render_window([part.text for part in packed.parts[:stable]])
        beginning = rendered.text.removesuffix(packing.renderer.after)
    encoded = len(beginning.encode("utf-8", "surrogatepass"))
    tokens = packing.count.count(beginning) if beginning else 0
    return CachePlan(encoded, len(beginning), tokens, tuple(_breaks(session, stable)))


def _breaks(session: _Session, stable: int) -> Iterator[CacheBreak]:
    """Yield what does not stand any more where it stood, with its reason."""
    previous = session.previous
    for number, group in enumerate(previous.groups):
        left = {piece.hit.chunk.id for piece in session.groups[number]}
        is_complete = len(left) == len(group.spans)
        for span in group.spans:
            reason = None if span.chunk in left else _removal_reason(previous, span)
            if reason is not None:
                yield CacheBreak(span.chunk, reason)
            elif is_complete and number == stable:
                yield CacheBreak(span.chunk, "changed")


def _removal_reason(previous: Previous, span: StoredSpan) -> BreakReason:
    if span.chunk in previous.hits:
        return "stale"
    return "filtered" if span.chunk in previous.hidden else "not_found"
