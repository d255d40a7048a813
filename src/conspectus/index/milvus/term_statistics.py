"""Term statistics of the Milvus index, in blocks that merge as they grow."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.milvus.state import MilvusState, Note, Notes, note_key

_TERMS = "terms"
_TERMS_IN_A_NOTE = 4_000
_MIN_SIZE_RATIO = 2
_ENTRY = np.dtype([("term", "<u8"), ("count", "<i4")])


@dataclass(frozen=True, slots=True)
class Block:
    """Changes of the document frequencies of terms, and of the chunk counts of sources; sorted."""

    terms: NDArray[np.uint64]
    counts: NDArray[np.int32]

    @classmethod
    def of(cls, terms: Sequence[NDArray[np.uint64]], counts: Sequence[NDArray[np.int32]]) -> "Block":
        """Return the sum of changes."""
        all_terms = np.concatenate([np.zeros(0, np.uint64), *terms])
        distinct, positions = np.unique(all_terms, return_inverse=True)
        summed = np.zeros(len(distinct), np.int64)
        np.add.at(summed, positions, np.concatenate([np.zeros(0, np.int32), *counts]))
        is_changed = summed != 0
        return cls(distinct[is_changed], summed[is_changed].astype(np.int32))

    def bodies(self) -> list[str]:
        """Encode the block in pieces that each fit into a note."""
        entries = np.empty(len(self.terms), _ENTRY)
        entries["term"], entries["count"] = self.terms, self.counts
        starts = range(0, len(entries), _TERMS_IN_A_NOTE)
        return [b64encode(entries[start : start + _TERMS_IN_A_NOTE].tobytes()).decode() for start in starts]

    @classmethod
    def from_bodies(cls, bodies: Sequence[str]) -> "Block":
        """Return the block that `bodies` encoded."""
        entries = np.frombuffer(b"".join(map(b64decode, bodies)), _ENTRY)
        return cls(entries["term"].astype(np.uint64), entries["count"].astype(np.int32))

    def documents(self, term: int) -> int:
        """Return the change for one term or source."""
        position = int(np.searchsorted(self.terms, np.uint64(term)))
        has_term = position < len(self.terms) and int(self.terms[position]) == term
        return int(self.counts[position]) if has_term else 0


class Terms:
    """The blocks of a state, cached; each is at least twice as large as the next."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._blocks: Mapping[tuple[str, int], Block] = {}

    async def blocks(self, state: MilvusState) -> list[Block] | None:
        """Return all blocks of a state; None if it is no longer current."""
        blocks: dict[tuple[str, int], Block] = {}
        for version, parts in state.blocks:
            block_key = state.generation, version
            if block_key in self._blocks:
                blocks[block_key] = self._blocks[block_key]
                continue
            keys = [note_key(_TERMS, version, str(number)) for number in range(parts)]
            bodies = await self._notes.bodies(state.generation, keys)
            if bodies is None:
                return None
            blocks[block_key] = Block.from_bodies(bodies)
        self._blocks = blocks
        return list(blocks.values())

    async def add(
        self, state: MilvusState, change: Block, before: Sequence[Block]
    ) -> tuple[MilvusState, list[str]]:
        """Write a change of the statistics. Returns the new state, and the keys of obsolete notes."""
        remaining = list(zip(state.blocks, before, strict=True))
        merged: list[tuple[tuple[int, int], Block]] = []
        while remaining and len(remaining[-1][1].terms) < _MIN_SIZE_RATIO * len(change.terms):
            merged.append(remaining.pop())
            last = merged[-1][1]
            change = Block.of([last.terms, change.terms], [last.counts, change.counts])
        notes = [
            Note(_TERMS, state.generation, state.version, str(number), body)
            for number, body in enumerate(change.bodies())
        ]
        await self._notes.put(state.generation, notes)
        self._blocks = {**self._blocks, (state.generation, state.version): change}
        blocks = [entry for entry, _ in remaining] + ([(state.version, len(notes))] if notes else [])
        obsolete_keys = [
            note_key(_TERMS, version, str(number))
            for (version, parts), _ in merged
            for number in range(parts)
        ]
        return replace(state, blocks=tuple(blocks)), obsolete_keys
