"""The deletion of summaries that a change of documents outdates."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from conspectus.records.core.statements import IDS, blocks
from conspectus.records.tables.streams import summaries, summary_captions, summary_parts

_MADE = select(summary_captions.c.summary).where(summary_captions.c.document.in_(IDS))
_FIRST = _MADE.cte("made", recursive=True)
_ALL = _FIRST.union(select(summary_parts.c.summary).join(_FIRST, summary_parts.c.part == _FIRST.c.summary))
_FORGET = delete(summaries).where(summaries.c.id.in_(select(_ALL.c.summary)))


def forget_summaries(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete every stored summary that was made of one of these documents, directly or not."""
    for block in blocks(numbers):
        if connection.execute(_MADE.limit(1), {"ids": block}).first() is not None:
            connection.execute(_FORGET, {"ids": block})
