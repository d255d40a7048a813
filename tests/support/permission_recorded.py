"""Reading answer records in a history: those of which every document may be read now, and no others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conspectus.errors import NotFound
from conspectus.model.answers import AnswerOptions, AnswerRecord
from tests.support.permission_model import Visitor, World

MAX_READ = 30
"""Number of the newest records that are looked at."""


async def read_records(world: World, who: Visitor, view: Any, owner_view: Any) -> list[AnswerRecord]:
    """Read the newest records of everybody as one person; return them without what people asked.

    A question is what its person wrote, and may name anything.
    """
    newest = (await owner_view.answers.list(limit=MAX_READ)).answers
    listed = await list_ids(view, since=newest[-1].id if newest else "")
    records: list[AnswerRecord] = []
    for summary in newest:
        everything = await owner_view.answers.get(summary.id)
        documents = documents_of(everything)
        is_modeled = documents <= world.papers.keys()
        is_own = summary.user == who.user.id
        readable = [world.sees_paper(who.user.id, world.papers[id]) for id in documents if is_modeled]
        may_read = all(readable) and (is_own or bool(documents))
        try:
            record = await view.answers.get(summary.id)
        except NotFound:
            assert not (is_modeled and may_read), f"{summary.id} is hidden"
            assert summary.id not in listed
            continue
        assert may_read, f"{summary.id} is not hidden"
        assert summary.id in listed
        records.append(without_question(record))
    return records


async def list_ids(view: Any, *, since: str) -> set[str]:
    """Return the ids of the newest records in a list, up to one of them."""
    ids: set[str] = set()
    after = None
    while True:
        page = await view.answers.list(after=after, limit=7)
        ids |= {summary.id for summary in page.answers}
        after = page.next
        if after is None or since in ids or len(ids) > 2 * MAX_READ:
            return ids


def documents_of(record: AnswerRecord) -> set[str]:
    """Return the documents that a record names."""
    parts: Sequence[Any] = (*record.candidates, *record.citations)
    return {part.document for part in parts}


def without_question(record: AnswerRecord) -> AnswerRecord:
    """Return a record without what its person wrote."""
    return replace(
        record, summary=replace(record.summary, question=""), options=AnswerOptions(), prompt=(), answer=""
    )
