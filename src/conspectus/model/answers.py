"""Answer records: windows, recalls and chats that people were given, with what led to them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.chat import Looked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.model.memory import NO_SCOPE, Scope
from conspectus.model.parameters import (
    AskedQuery,
    PersonName,
    StoredCollection,
    StoredId,
    StoredKey,
    StoredSource,
    StoredText,
    StoredTitle,
)
from conspectus.model.results import Citation, Message, TraceStatus
from conspectus.model.trust import MinTrust

AnswerKind = Literal["window", "recall", "chat"]
AnswerPart = Literal["prompt", "candidates", "answer"]
ANSWER_PARTS: Final[tuple[AnswerPart, ...]] = ("prompt", "candidates", "answer")
"""Parts of a record that may be left out, in the order in which a record that is too large loses them."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The options of the question; the budget is `max_tokens` of `tokenizer`, and 0 for a recall.

    `limit` is None where a window takes as many hits as fill it. `profile` names the weights of the parts of
    a score. `scope` is that of memories.
    """

    max_tokens: int = 0
    tokenizer: Annotated[str, Example("o200k_base")] = "o200k_base"
    format: Annotated[str, Example("text")] = "text"
    limit: int | None = None
    filter: Filter = EVERYTHING
    min_similarity: float | None = None
    min_confidence: float = 0.0
    min_trust: MinTrust | None = None
    rerank: bool = True
    profile: Annotated[str, Example("default")] = "default"
    as_of: datetime | None = None
    scope: Scope = NO_SCOPE


@dataclass(frozen=True, slots=True)
class AnswerCandidate:
    """A candidate with its rank, its score, and its status in the window.

    `start` and `end` are characters of the document. `source`, `key` and `title` are those that the document
    has now, and empty if it was deleted since.
    """

    rank: int
    chunk: int
    document: StoredId
    start: int
    end: int
    score: float
    parts: Mapping[str, float]
    status: TraceStatus
    tokens: int
    source: StoredSource = ""
    key: StoredKey = ""
    title: StoredTitle = ""


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """An answer record in a list: who asked what, when, and the size of what was given.

    `user` is the id of the person who asked, `user_name` the name. `collection` is the name of the
    collection, `*` for all, and empty if you may not read it. `passages` are those in the window or, of a
    chat, in the prompt. `model` answered a chat, which `failure`, a code, ended early.
    """

    id: StoredId
    kind: AnswerKind
    user: UserId
    created: datetime
    question: AskedQuery
    outcome: Looked
    collection: StoredCollection = ""
    user_name: PersonName = ""
    passages: int = 0
    tokens: int = 0
    model: Annotated[str, Example("openai:gpt-5-mini")] = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """What a person was given for a question, as it was given: the window, and of a chat prompt and answer.

    `text` is the window, of a recall the memories as numbered lines. `citations` say which characters of
    which document each number stands for. Of them, the answer of the model cites the numbers `cited`; it also
    cites `unknown` ones, which it was not given. `left_out` are parts that are not kept: the record was too
    large, or earlier answers in the conversation have texts whose documents are not known. `changed` are the
    documents whose text or fields are others by now.
    """

    summary: AnswerSummary
    options: AnswerOptions
    text: StoredText
    citations: tuple[Citation, ...] = ()
    candidates: tuple[AnswerCandidate, ...] = ()
    prompt: tuple[Message, ...] = ()
    answer: StoredText = ""
    cited: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    confidence: float = 0.0
    left_out: tuple[AnswerPart, ...] = ()
    changed: tuple[StoredId, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """Answer records, newest first; `next` is the cursor of the page after this one, if any."""

    answers: tuple[AnswerSummary, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class AnswerAccess:
    """What a person may read: whole `collections`, and `sources`. Records before `since` are too old."""

    user: UserId
    collections: tuple[CollectionId, ...]
    sources: tuple[SourceId, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """The records of a list: those of a person, of a kind, and of a collection; None means all."""

    user: UserId | None = None
    kind: AnswerKind | None = None
    collection: CollectionId | None = None


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Records before `since` are deleted, then the oldest beyond `max_count` records or `max_bytes`."""

    since: datetime
    max_count: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """A record to store, the documents whose texts are in it, and the digest of the answer of its model."""

    record: AnswerRecord
    documents: tuple[StoredId, ...] = ()
    answer_digest: str = ""
