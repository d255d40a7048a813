"""Deleting what was made of documents: summaries of them, and summaries of those."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, delete, select

from conspectus.records.core.rows import blocks
from conspectus.records.tables.summaries import summaries, summary_captions, summary_parts

_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
_MADE = select(summary_captions.c.summary).where(summary_captions.c.document.in_(_NUMBERS))
_FIRST = _MADE.cte("made", recursive=True)
_ALL = _FIRST.union(select(summary_parts.c.summary).join(_FIRST, summary_parts.c.part == _FIRST.c.summary))
_FORGET = delete(summaries).where(summaries.c.id.in_(select(_ALL.c.summary)))


def forget_summaries(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete every kept summary that was made of one of these documents, directly or not."""
    for block in blocks(numbers):
        if connection.execute(_MADE.limit(1), {"numbers": block}).first() is not None:
            connection.execute(_FORGET, {"numbers": block})
