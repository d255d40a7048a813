"""In how many chunks each term occurs: blocks in Milvus, of which this process holds a copy."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from conspectus.index.milvus.state import MilvusState, Note, Notes, note_key

_KIND = "terms"
_IN_A_NOTE = 5_000
_RATIO = 2


@dataclass(frozen=True, slots=True)
class Block:
    """By how much the numbers of chunks with certain terms changed; terms are sorted."""

    terms: NDArray[np.uint32]
    counts: NDArray[np.int32]

    @classmethod
    def of(cls, terms: Sequence[NDArray[np.uint32]], counts: Sequence[NDArray[np.int32]]) -> "Block":
        """The sum of changes."""
        every = np.concatenate([np.zeros(0, np.uint32), *terms])
        distinct, place = np.unique(every, return_inverse=True)
        summed = np.zeros(len(distinct), np.int64)
        np.add.at(summed, place, np.concatenate([np.zeros(0, np.int32), *counts]))
        kept = summed != 0
        return cls(distinct[kept], summed[kept].astype(np.int32))

    def bodies(self) -> list[str]:
        """The block in pieces that fit into a note."""
        pieces = [slice(start, start + _IN_A_NOTE) for start in range(0, len(self.terms), _IN_A_NOTE)]
        return [
            b64encode(self.terms[p].astype("<u4").tobytes() + self.counts[p].astype("<i4").tobytes()).decode()
            for p in pieces
        ]

    @classmethod
    def from_bodies(cls, bodies: Sequence[str]) -> "Block":
        """What `bodies` wrote."""
        pieces = [np.frombuffer(b64decode(body), "<u4").reshape(2, -1) for body in bodies]
        terms = np.concatenate([np.zeros(0, np.uint32), *(piece[0] for piece in pieces)])
        counts = np.concatenate([np.zeros(0, np.uint32), *(piece[1] for piece in pieces)])
        return cls(terms.astype(np.uint32), counts.astype(np.uint32).view(np.int32))

    def documents(self, term: int) -> int:
        """The change for one term."""
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        found = place < len(self.terms) and int(self.terms[place]) == term
        return int(self.counts[place]) if found else 0


class Terms:
    """The blocks of a state, read once and kept; each is at least twice as large as the next."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._held: Mapping[tuple[str, int], Block] = {}

    async def blocks(self, state: MilvusState) -> list[Block] | None:
        """All blocks of a state; None if it is no longer the current one."""
        found: dict[tuple[str, int], Block] = {}
        for version, parts in state.blocks:
            place = state.generation, version
            if place in self._held:
                found[place] = self._held[place]
                continue
            keys = [note_key(_KIND, version, str(number)) for number in range(parts)]
            bodies = await self._notes.bodies(state.generation, keys)
            if bodies is None:
                return None
            found[place] = Block.from_bodies(bodies)
        self._held = found
        return list(found.values())

    async def add(
        self, state: MilvusState, change: Block, before: Sequence[Block]
    ) -> tuple[MilvusState, list[str]]:
        """The state with a change to the statistics, written, and the keys of the notes it does without."""
        kept = list(zip(state.blocks, before, strict=True))
        merged: list[tuple[tuple[int, int], Block]] = []
        while kept and len(kept[-1][1].terms) < _RATIO * len(change.terms):
            merged.append(kept.pop())
            last = merged[-1][1]
            change = Block.of([last.terms, change.terms], [last.counts, change.counts])
        notes = [
            Note(_KIND, state.generation, state.version, str(number), body)
            for number, body in enumerate(change.bodies())
        ]
        await self._notes.put(state.generation, notes)
        self._held = {**self._held, (state.generation, state.version): change}
        blocks = [entry for entry, _ in kept] + ([(state.version, len(notes))] if notes else [])
        gone = [
            note_key(_KIND, version, str(number)) for (version, parts), _ in merged for number in range(parts)
        ]
        return replace(state, blocks=tuple(blocks)), gone
