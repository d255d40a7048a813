"""The service of answer records: list, read and delete what people were given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from conspectus.access.policy import require_own_origin, require_scope
from conspectus.engine.service import Service
from conspectus.errors import NotFound
from conspectus.model.answers import (
    AnswerAccess,
    AnswerKind,
    AnswerPage,
    AnswerRecord,
    AnswerSelection,
    AnswerSummary,
)
from conspectus.model.ids import CollectionId, UserId
from conspectus.model.parameters import (
    AnswerIdentifier,
    CollectionName,
    Cursor,
    PageLimit,
    UserName,
)
from conspectus.model.query import EVERYWHERE


class AnswerService(Service):
    """Answer records: the windows, recalls and chat answers that people received, if settings keep them.

    You read a record while you may read every document, message and memory in it.
    """

    async def list(
        self,
        *,
        user: Annotated[UserName, "Only records of this person."] | None = None,
        kind: Annotated[AnswerKind | None, "Only records of this kind."] = None,
        collection: Annotated[CollectionName, "Only of this collection; `*`: those of all at once."]
        | None = None,
        after: Cursor | None = None,
        limit: PageLimit = 100,
    ) -> AnswerPage:
        """List the answer records that you may read, newest first. Raises NotFound."""
        access = await self._read_access()
        selection = AnswerSelection(
            None if user is None else await self._find_user(user),
            kind,
            None if collection is None else await self._find_collection(collection),
        )
        page = await self._parts.answers.list(selection, access, after=after, limit=limit)
        openable = await self._list_openable([summary.id for summary in page.answers])
        summaries = [summary for summary in page.answers if summary.id in openable]
        users = await self._read_users(summary.user for summary in summaries)
        collections = await self._read_collections()
        return replace(page, answers=tuple(_with_names(summary, users, collections) for summary in summaries))

    async def get(self, answer: AnswerIdentifier) -> AnswerRecord:
        """Return an answer record. Raises NotFound, also if you may not read one of its documents."""
        record = await self._find(answer)
        users = await self._read_users([record.summary.user])
        collections = await self._read_collections()
        return replace(record, summary=_with_names(record.summary, users, collections))

    async def delete(self, answer: AnswerIdentifier) -> None:
        """Delete an answer record of yours; the owner account may delete any that it reads.

        Raises NotFound.
        """
        require_scope(self._person, "write", "delete an answer record")
        require_own_origin(self._person, "delete an answer record")
        record = await self._find(answer)
        if record.summary.user != self._person.id and not self._person.owner:
            raise NotFound("answer", answer)
        await self._parts.answers.delete(answer)

    async def _find(self, answer: str) -> AnswerRecord:
        record = await self._parts.answers.get(answer, await self._read_access())
        if record is None or answer not in await self._list_openable([answer]):
            raise NotFound("answer", answer)
        return record

    async def _list_openable(self, record_ids: Sequence[str]) -> set[str]:
        """Return the records whose documents the remotes let the person open now, if they are asked."""
        if not self._authorized.gate.asks_remotes:
            return set(record_ids)
        documents = await self._parts.answers.list_documents(record_ids)
        ids = list(dict.fromkeys(document for linked in documents.values() for document in linked))
        openable = {document.id for document, _ in await self._authorized.documents(ids)}
        return {record for record in record_ids if openable.issuperset(documents.get(record, ()))}

    async def _read_access(self) -> AnswerAccess:
        """Return what the person may read, when all records of this process are written."""
        await self._core.answer_writes.wait_until_written()
        since = self._parts.clock() - timedelta(days=self._parts.settings.answer_days)
        return await self._authorized.answer_access(since)

    async def _find_user(self, name: str) -> UserId:
        person = self._person
        return person.id if name in {person.id, person.name} else (await self._directory.user(name)).id

    async def _find_collection(self, name: str) -> CollectionId:
        if name == EVERYWHERE:
            return CollectionId(EVERYWHERE)
        return (await self._authorized.collection(name)).collection.id

    async def _read_users(self, ids: Iterable[UserId]) -> Mapping[UserId, str]:
        """Return the names of people by id, without those who were deleted."""
        person = self._person
        names = {person.id: person.name}
        for id in {*ids} - names.keys():
            user = await self._parts.accounts.user(id)
            if user is not None and user.id == id:
                names[id] = user.name
        return names

    async def _read_collections(self) -> Mapping[str, str]:
        accesses = await self._authorized.collections()
        return {access.collection.id: access.collection.name for access in accesses}


def _with_names(
    summary: AnswerSummary, users: Mapping[UserId, str], collections: Mapping[str, str]
) -> AnswerSummary:
    """Return a summary with the name of its person and collection."""
    is_everywhere = summary.collection == EVERYWHERE
    return replace(
        summary,
        user_name=users.get(summary.user, ""),
        collection=EVERYWHERE if is_everywhere else collections.get(summary.collection, ""),
    )
