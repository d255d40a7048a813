"""Memories as they are told of."""

from datetime import datetime
from typing import Literal

from conspectus.model.memory import MemoryClass, Origin
from conspectus.model.results import Outcome
from conspectus.web.schemas.base import Count, JsonObject, ResponseModel
from conspectus.web.schemas.records import DocumentAnswer
from conspectus.web.schemas.search import WindowAnswer


class ScopeAnswer(ResponseModel):
    """Whose memories."""

    user: str | None
    agent: str | None
    conversation: str | None


class FactAnswer(ResponseModel):
    """Subject, relation, object."""

    subject: str
    predicate: str
    object: str
    single: bool


class MemoryAnswer(ResponseModel):
    """A memory as it is stored, or an earlier version of it; its ETag is the document's fingerprint.

    `known_until` is when another version took its place, `closed_by` the memory that ended its fact; `near`
    are those that say nearly the same.
    """

    id: str
    text: str
    scope: ScopeAnswer
    document: DocumentAnswer
    kind: MemoryClass
    pinned: bool
    metadata: JsonObject
    known_from: datetime
    known_until: datetime | None
    fact: FactAnswer | None
    valid_from: datetime | None
    valid_until: datetime | None
    closed_by: str | None
    closes: list[str]
    near: list[str]
    entities: list[str]


class RememberedAnswer(ResponseModel):
    """What storing did: `near` are memories that say nearly the same, `closed` those whose fact it ended."""

    id: str
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    near: list[str]
    closed: list[str]


class RecentMemoryAnswer(ResponseModel):
    """One of the last turns: `text` is what of it fits, with a mark where it was `cut`."""

    memory: MemoryAnswer
    text: str
    tokens: Count
    cut: bool


class RecalledAnswer(ResponseModel):
    """A memory that answers; `score` is the sum of `parts`, `through` the way in the graph that led to it."""

    memory: MemoryAnswer
    score: float
    parts: dict[str, float]
    origins: list[Origin]
    similarity: float | None
    through: list[str]
    why: list[str]


class SinceAnswer(ResponseModel):
    """How many memories were recorded, changed and deleted after an instant."""

    recorded: Count
    changed: Count
    deleted: Count


class RecollectionAnswer(ResponseModel):
    """What was recalled, best first; `since` where it was asked for as of an instant."""

    outcome: Outcome
    memories: list[RecalledAnswer]
    plan: dict[str, str]
    notices: list[str]
    timings: dict[str, float]
    since: SinceAnswer | None


class MemoryWindowAnswer(ResponseModel):
    """Context from memory that costs `tokens`: standing notes, what was recalled, the last turns."""

    text: str
    tokens: Count
    notes: list[MemoryAnswer]
    recent: list[RecentMemoryAnswer]
    window: WindowAnswer


class MemoryPageAnswer(ResponseModel):
    """Memories in the order of time; `next` is the cursor of the page after this one."""

    memories: list[MemoryAnswer]
    next: str | None


class ForgetReceiptAnswer(ResponseModel):
    """What is gone, or with `preview` what would go; `purged` says that no file holds any of it."""

    memories: Count
    versions: Count
    chunks: Count
    vectors: Count
    edges: Count
    ids: list[str]
    preview: bool
    purged: bool


class RetentionAnswer(ResponseModel):
    """How long, and how many, are kept."""

    days: float | None
    most: int | None


class RetentionRuleAnswer(ResponseModel):
    """A retention as it is kept for a scope, and when it was last carried out."""

    scope: ScopeAnswer
    retention: RetentionAnswer
    collection: str
    ran: datetime | None


class ConversationAnswer(ResponseModel):
    """A conversation in numbers."""

    scope: ScopeAnswer
    memories: Count
    first: datetime | None
    last: datetime | None


class MemoryStatsAnswer(ResponseModel):
    """A scope in numbers; tokens of o200k_base, `pending` memories wait for their vectors."""

    memories: Count
    notes: Count
    pinned: Count
    facts: Count
    versions: Count
    conversations: Count
    entities: Count
    tokens: Count
    pending: Count
    first: datetime | None
    last: datetime | None


class MemoryExportAnswer(ResponseModel):
    """Memories as lines of JSON; `next` is the cursor of the rest."""

    lines: list[str]
    next: str | None


class ImportedAnswer(ResponseModel):
    """What became of lines that were taken in."""

    added: Count
    replaced: Count
    updated: Count
    unchanged: Count
