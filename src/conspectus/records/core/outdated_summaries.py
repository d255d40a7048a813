"""The deletion of summaries that a change of documents outdates."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from conspectus.records.core.statements import IDS, blocks
from conspectus.records.tables.streams import summaries, summary_captions, summary_parts

_SUMMARIES_OF_DOCUMENTS = select(summary_captions.c.summary).where(summary_captions.c.document.in_(IDS))
_DIRECT = _SUMMARIES_OF_DOCUMENTS.cte("made", recursive=True)
_OUTDATED = _DIRECT.union(
    select(summary_parts.c.summary).join(_DIRECT, summary_parts.c.part == _DIRECT.c.summary)
)
_DELETE = delete(summaries).where(summaries.c.id.in_(select(_OUTDATED.c.summary)))


def forget_summaries(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete every stored summary that was made of one of these documents, directly or not."""
    for block in blocks(numbers):
        if connection.execute(_SUMMARIES_OF_DOCUMENTS.limit(1), {"ids": block}).first() is not None:
            connection.execute(_DELETE, {"ids": block})
