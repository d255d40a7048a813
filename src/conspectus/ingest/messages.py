"""From messages to documents: whom each answers, and which thread it stands in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from conspectus.ingest.prepare import period
from conspectus.model.conversation import ANSWERS, REPLY_TO, NewMessage
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Document, NewDocument, Period, StoredChunk
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id
from conspectus.text.replies import Linker, Utterance


def message_id(source: SourceId, key: str) -> DocumentId:
    """The id that the message of a key has in its channel."""
    return DocumentId(stable_id("document", source, clean(key)))


@dataclass(slots=True)
class Threading:
    """Finds the thread of each message of one channel, in the order in which they were written.

    What the platform says counts; where it says nothing, a message keeps the thread it was stored with, and
    a new one is given the thread of the message that `linker` takes it to answer (None: it begins its own).
    A message without a time is of `now`, unless it has a sequence.
    """

    linker: Linker | None
    now: datetime
    _threads: dict[str, str] = field(default_factory=dict)

    def recall(self, latest: Sequence[StoredChunk]) -> None:
        """Take in what was said last in the channel, newest first, as the records give it."""
        for row in reversed(latest):
            document = row.document
            told = document.metadata.get(REPLY_TO) or document.metadata.get(ANSWERS)
            self._threads[document.key] = document.thread or document.key
            self._hear(document.key, _uttered(document, row.chunk.text), str(told or document.key))

    def documents(self, batch: Sequence[NewMessage], stored: Mapping[str, Document]) -> list[NewDocument]:
        """The documents of a batch. `stored` are those of its keys, and of what it answers, that exist."""
        self._threads.update({key: each.thread or key for key, each in stored.items()})
        return [self._document(each, stored) for each in batch]

    def _document(self, new: NewMessage, stored: Mapping[str, Document]) -> NewDocument:
        key = clean(new.key) if new.key is not None else str(uuid4())
        before = stored.get(key)
        occurred = self._occurred(new, before)
        thread, answers = self._place(new, key, before, occurred)
        self._threads[key] = thread
        links = {name: value for name, value in ((REPLY_TO, new.reply_to), (ANSWERS, answers)) if value}
        return NewDocument(
            text=new.text,
            kind="message",
            key=key,
            author=new.author,
            role=new.role,
            occurred=occurred,
            sequence=new.sequence,
            thread=thread,
            metadata={**new.metadata, **links},
        )

    def _place(
        self, new: NewMessage, key: str, before: Document | None, occurred: Period | None
    ) -> tuple[str, str | None]:
        """The thread of a message, and the key of the one it seems to answer where nobody says."""
        said = Utterance(new.author, new.text, occurred.start if occurred else None, new.role == "system")
        if new.reply_to is not None or new.thread is not None:
            answered = None if new.reply_to is None else clean(new.reply_to)
            if new.thread is None or new.thread == key:
                self._hear(key, said, answered or key)
            return new.thread or self._threads.get(answered or key, answered or key), None
        if before is not None:
            told = before.metadata.get(ANSWERS)
            self._hear(key, said, str(told or key))
            return before.thread or key, None if told is None else str(told)
        answers = None if self.linker is None else self.linker.link(key, said)
        if answers is None:
            return key, None
        return self._threads.get(answers, answers), answers

    def _hear(self, key: str, said: Utterance, answers: str) -> None:
        """What is known needs no guess; a message that answers itself begins a conversation."""
        if self.linker is not None:
            self.linker.link(key, said, answers=answers)

    def _occurred(self, new: NewMessage, before: Document | None) -> Period | None:
        if new.at is not None:
            return period(new.at)
        if before is not None:
            return before.occurred
        return None if new.sequence is not None else period(self.now)


def _uttered(document: Document, text: str) -> Utterance:
    at = document.occurred.start if document.occurred else None
    return Utterance(document.author, text, at, document.role == "system")
