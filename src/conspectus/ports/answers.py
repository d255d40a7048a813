"""Storage of answer records besides Records."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from conspectus.model.answers import (
    AnswerAccess,
    AnswerLimits,
    AnswerPage,
    AnswerRecord,
    AnswerSelection,
    NewAnswer,
)
from conspectus.model.ids import DocumentId, UserId


class AnswerStore(Protocol):
    """Windows, recalls and chats that were given. A record ends with each document whose text it has.

    A record is readable to who may read all of its documents now; one without documents to who asked. A purge
    deletes records with texts that a document of the purged collections has no more.
    """

    async def add(self, new_answers: Sequence[NewAnswer], limits: AnswerLimits) -> int:
        """Store records, and delete those beyond the limits.

        A record of a deleted document is left out. Returns the number of the others.
        """

    async def get(self, answer: str, access: AnswerAccess) -> AnswerRecord | None:
        """The record of that id; None if the person may not read it."""

    async def list(
        self, selection: AnswerSelection, access: AnswerAccess, *, after: str | None, limit: int
    ) -> AnswerPage:
        """A page of the records that the person may read, newest first.

        Raises InvalidInput for a broken cursor.
        """

    async def delete(self, answer: str) -> bool:
        """Delete a record; whether it existed."""

    async def list_documents(self, record_ids: Sequence[str]) -> Mapping[str, Sequence[DocumentId]]:
        """The documents whose texts records have, by the ids of these; those without any are left out."""

    async def documents_of(self, user: UserId, digests: Sequence[str]) -> Mapping[str, Sequence[DocumentId]]:
        """The documents of the answers of a person, by the digest of each; unknown digests are left out."""
