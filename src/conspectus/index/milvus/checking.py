"""Comparing the rows in Milvus with the records."""

from collections.abc import Sequence

from conspectus.index.changes import Range, untouched_since
from conspectus.index.milvus.rows import VECTORS, WORDS, signed_checksum
from conspectus.index.milvus.search import MilvusSnapshot
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.ports import Reader

_AT_ONCE = 2_000
_BEYOND = 2**63 - 1


async def differences(
    view: MilvusSnapshot, where: str, reader: Reader, *, vectors: bool
) -> list[Disagreement]:
    """Every visible row against the records; what changed after the version is left out.

    More rows than Milvus lists at once between two chunks of the records are named in part.
    """
    found: list[Disagreement] = []
    last = -1
    async for batch in reader.scan():
        for start in range(0, len(batch), _AT_ONCE):
            chunks = batch[start : start + _AT_ONCE]
            end = chunks[-1].chunk.id
            found += await _between(view, where, (last + 1, end), chunks, vectors=vectors)
            last = end
    found += await _between(view, where, (last + 1, _BEYOND), (), vectors=vectors)
    return await untouched_since(view.state.applied, found, reader)


async def _between(
    view: MilvusSnapshot, where: str, span: Range, chunks: Sequence[IndexedChunk], *, vectors: bool
) -> list[Disagreement]:
    words = await _checksums(view, WORDS, where, span)
    with_vector = await _checksums(view, VECTORS, where, span) if vectors else {}
    found = []
    for chunk in chunks:
        number, checksum = chunk.chunk.id, signed_checksum(chunk)
        stored = words.pop(number, None)
        vector = with_vector.pop(number, None)
        if stored is None:
            found.append(Disagreement(number, "missing", "not in the index"))
        elif stored != checksum:
            found.append(Disagreement(number, "stale", "the records hold another version"))
        elif vectors and vector != (checksum if chunk.vector is not None else None):
            found.append(Disagreement(number, "damaged", "its vector in Milvus is missing or another one"))
    ghosts = words.keys() | with_vector.keys()
    return found + [Disagreement(ChunkId(number), "ghost", "not in the records") for number in ghosts]


async def _checksums(view: MilvusSnapshot, what: str, where: str, span: Range) -> dict[int, int]:
    expression = f"{where} and chunk >= {span[0]} and chunk <= {span[1]}"
    rows = await view.server.query(view.collection(what), expression, ["chunk", "checksum"])
    return {row["chunk"]: row["checksum"] for row in rows}
