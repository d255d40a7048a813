"""Keeps what a person was given as answer records, if the settings say so.

A record is written after the answer, and never fails it: the log says why one was not kept.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final
from uuid import uuid4

from conspectus.engine.answer_parts import without_surplus
from conspectus.engine.answer_writes import log_loss
from conspectus.engine.context import EngineContext
from conspectus.errors import ConspectusError
from conspectus.model.answers import (
    AnswerKind,
    AnswerOptions,
    AnswerPart,
    AnswerRecord,
    AnswerSummary,
    NewAnswer,
)
from conspectus.model.filter_json import filter_from_json, filter_to_json
from conspectus.model.ids import CollectionId
from conspectus.model.memory import Scope
from conspectus.model.query import EVERYWHERE
from conspectus.model.results import Message
from conspectus.text.hashing import content_hash

UNKNOWN_ORIGIN: Final[tuple[AnswerPart, ...]] = ("prompt", "answer")
"""Parts that may repeat an earlier answer whose documents are not known."""


class AnswerRecorder:
    """Records the windows, recalls and chat answers of one person."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._parts = context.parts
        self._person = context.person
        self._writes = context.core.answer_writes

    def begin(self, kind: AnswerKind) -> AnswerSummary | None:
        """Return the beginning of a record; None if the settings, or the sample, leave this answer out.

        It is called before texts are read: what changes later is marked. Nothing is kept of what somebody
        sees as another person.
        """
        settings = self._parts.settings
        if settings.answer_records == "off" or self._person.seen_by is not None:
            return None
        if settings.answer_records == "sampled" and secrets.randbelow(100) >= settings.answer_sample_percent:
            return None
        return AnswerSummary(
            str(uuid4()), kind, self._person.id, self._parts.clock(), question="", outcome="no_match"
        )

    async def keep(
        self,
        record: AnswerRecord,
        documents: Iterable[str],
        *,
        earlier_answers: Sequence[str] = (),
        has_unknown_texts: bool = False,
    ) -> str:
        """Keep a record with texts of these documents; return its id, or empty if it cannot be kept.

        The answer of a model may repeat `earlier_answers` of the conversation: it then has texts of their
        documents. If these are not known, or there are unknown texts, prompt and answer are left out.
        """
        lighter = without_surplus(record, self._parts.settings.max_answer_bytes)
        if lighter is None:
            log_loss("too_large")
            return ""
        try:
            answer = await self._prepare(lighter, {*documents}, earlier_answers, has_unknown_texts)
        except ConspectusError as fault:
            log_loss(fault.code)
            return ""
        await self._writes.add(answer)
        return record.summary.id

    async def _prepare(
        self,
        record: AnswerRecord,
        documents: set[str],
        earlier_answers: Sequence[str],
        has_unknown_texts: bool,
    ) -> NewAnswer:
        """Return the record with masks, and with the documents of earlier answers."""
        all_documents, digests = {*documents}, [*map(digest_of, earlier_answers)]
        linked: Mapping[str, Sequence[str]] = {}
        if digests:
            await self._writes.wait_until_written()
            linked = await self._parts.answers.documents_of(self._person.id, digests)
        all_documents.update(document for ids in linked.values() for document in ids)
        if has_unknown_texts or linked.keys() < {*digests}:
            left_out = tuple(dict.fromkeys((*UNKNOWN_ORIGIN, *record.left_out)))
            record = replace(record, prompt=(), answer="", left_out=left_out)
        digest = digest_of(record.answer) if record.answer else ""
        return NewAnswer(await self._screen(record), tuple(sorted(all_documents)), digest)

    async def _screen(self, record: AnswerRecord) -> AnswerRecord:
        """Return a record with the id of its collection, and with sensitive data masked as in documents.

        Raises InvalidInput for what is refused.
        """
        collection_id = None
        name = record.summary.collection
        if name != EVERYWHERE:
            access = await self._context.authorized.find(name)
            collection_id = None if access is None else access.collection.id
        screen = self._context.screen_value
        question = screen("answers.question", record.summary.question, collection_id)
        stored_collection = collection_id or (EVERYWHERE if name == EVERYWHERE else "")
        return replace(
            record,
            summary=replace(record.summary, question=question, collection=stored_collection),
            options=self._screen_options(record.options, collection_id),
            answer=screen("answers.answer", record.answer, collection_id),
            prompt=tuple(self._screen_message(message, collection_id) for message in record.prompt),
        )

    def _screen_options(self, options: AnswerOptions, collection: CollectionId | None) -> AnswerOptions:
        """Return the options with masks in the filter and in the names of the scope."""
        written: dict[str, Any] = {"filter": filter_to_json(options.filter), "scope": asdict(options.scope)}
        screened = self._context.screen_value("answers.options", written, collection)
        scope = Scope(**screened["scope"])
        return replace(options, filter=filter_from_json(screened["filter"]), scope=scope)

    def _screen_message(self, message: Message, collection: CollectionId | None) -> Message:
        content = self._context.screen_value("answers.prompt", message.content, collection)
        return Message(message.role, content)


def digest_of(answer: str) -> str:
    """Return the digest by which a later turn names an answer of a model."""
    return content_hash(answer.strip())
