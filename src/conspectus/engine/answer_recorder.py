"""Keeps what a person was given as answer records, if the settings say so.

A record that cannot be kept never fails the answer: the log says why.
"""

import logging
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from conspectus.engine.answer_parts import without_surplus
from conspectus.engine.context import EngineContext
from conspectus.errors import ConspectusError
from conspectus.model.answers import (
    AnswerLimits,
    AnswerOptions,
    AnswerPart,
    AnswerRecord,
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

logger = logging.getLogger(__name__)


class AnswerRecorder:
    """Keeps what one person is given."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._parts = context.parts
        self._person = context.person

    def begin(self) -> str:
        """Return the id of a record to keep; empty if the settings, or chance, say that none is kept.

        Nothing is kept of what somebody sees as another person.
        """
        settings = self._parts.settings
        if settings.answer_records == "off" or self._person.seen_by is not None:
            return ""
        if settings.answer_records == "sampled":
            is_chosen = secrets.randbelow(100) < settings.answer_sample_percent
            return str(uuid4()) if is_chosen else ""
        return str(uuid4())

    async def keep(
        self,
        record: AnswerRecord,
        documents: Iterable[str],
        *,
        earlier_answers: Sequence[str] = (),
        has_unknown_texts: bool = False,
    ) -> str:
        """Keep a record with texts of these documents; return its id, or empty if it could not be kept.

        The answer of a model may repeat `earlier_answers` of the conversation: it then has texts of their
        documents. If these are not known, or there are unknown texts, prompt and answer are left out.
        """
        try:
            answer = await self._prepare(record, documents, earlier_answers, has_unknown_texts)
            lighter = without_surplus(answer, self._parts.settings.max_answer_bytes)
            if lighter is None:
                logger.info("answer_not_kept reason=%(reason)s", {"reason": "too large"})
                return ""
            is_kept = await self._parts.answers.add(lighter, self._limits())
        except ConspectusError as fault:
            logger.warning("answer_not_kept reason=%(reason)s", {"reason": fault.code})
            return ""
        return record.summary.id if is_kept else ""

    def _limits(self) -> AnswerLimits:
        settings = self._parts.settings
        since = self._parts.clock() - timedelta(days=settings.answer_days)
        return AnswerLimits(since, settings.max_answers, settings.max_answers_bytes)

    async def _prepare(
        self,
        record: AnswerRecord,
        documents: Iterable[str],
        earlier_answers: Sequence[str],
        has_unknown_texts: bool,
    ) -> NewAnswer:
        """Return the record with masks, and with the documents of earlier answers."""
        all_documents, digests = {*documents}, [*map(digest_of, earlier_answers)]
        linked = await self._parts.answers.documents_of(self._person.id, digests) if digests else {}
        all_documents.update(document for ids in linked.values() for document in ids)
        if has_unknown_texts or linked.keys() < {*digests}:
            record = replace(record, prompt=(), answer="", left_out=UNKNOWN_ORIGIN)
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
