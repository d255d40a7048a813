"""Memories of agents: their inputs, scopes, queries and results."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.checks import Checked
from conspectus.model.filter import DocumentFilter
from conspectus.model.graph import Fact, GraphExpansion
from conspectus.model.parameters import (
    DEFAULT_HITS,
    AsOf,
    Cursor,
    HitLimit,
    Identifier,
    KeptDays,
    Key,
    Label,
    ListedEntities,
    LowestTrust,
    MemoryCollection,
    MinConfidence,
    MinSimilarity,
    Name,
    PageLimit,
    QueryText,
    StoredCollection,
    StoredId,
    StoredText,
    Text,
    TokenLimit,
    Vector,
    WriterOrigin,
    WriterTrust,
)
from conspectus.model.query import WindowFormOptions
from conspectus.model.records import Document, Metadata
from conspectus.model.results import ContextWindow, Outcome
from conspectus.model.stream_events import ENTITIES
from conspectus.model.trust import MinTrust

MEMORY = "memory"
"""The default collection of memories."""
TURNS = "turns"
"""The thread of all turns of a conversation: the one before and the one after are neighbors."""

GivenKind = Literal["turn", "note"]
FactKind = Literal["fact", "preference", "procedure", "relation"]
MemoryKind = Literal["turn", "note", "fact", "preference", "procedure", "relation"]
CLASSES: tuple[GivenKind, ...] = get_args(GivenKind)
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
"""Kinds of memories that are given, and of those that a chat model extracted from them."""

USER, AGENT, CONVERSATION = "user", "agent", "conversation"
CLASS = "class"
PINNED = "pinned"
FACT = "fact"
VALID_FROM, VALID_UNTIL = "valid_from", "valid_until"
CLOSED_BY, CLOSES = "closed_by", "closes"
NEAR = "near"
CITES = "cites"
KNOWN_FROM = "known_from"
UNTIL = "known_until"
OWN = "own"
"""Metadata of a memory: its scope, kind and pin, its fact with the time in which that is true, the memories
that ended it or were ended by it, near duplicates, what it was extracted from, the time in which it was the
known version, and under `own` the caller's metadata."""


@dataclass(frozen=True, slots=True)
class Scope(Checked):
    """The user, agent and conversation that memories belong to.

    For writes, None means no user, no agent, no conversation. For reads, `user` None means the memories of no
    user, never those of all; `agent` and `conversation` None mean any.
    """

    user: Annotated[Name, "User of the memories; none: memories of no user.", Example("ann")] | None = None
    agent: Annotated[Name, "Agent of the memories; none: any.", Example("assistant")] | None = None
    conversation: (
        Annotated[Name, "Conversation of the memories; none: any.", Example("support-17")] | None
    ) = None


NO_SCOPE: Final = Scope()
"""The default of a scope that has to be given, as `scope` or by its names."""


class ScopeNames(TypedDict, total=False):
    """The names of a scope, as keyword arguments in place of `scope`."""

    user: Annotated[Name, "User of the memories.", Example("ann")] | None
    agent: Annotated[Name, "Agent of the memories.", Example("assistant")] | None
    conversation: Annotated[Name, "Conversation of the memories.", Example("support-17")] | None


@dataclass(frozen=True, slots=True)
class NewMemory(Checked):
    """A memory to be added; its text is stored unchanged.

    `key` is the caller's own name for it, unique in its scope; `at` is when it was said (None: now). A `note`
    is a preference or an instruction, and a candidate for every window. Retention does not delete `pinned`
    memories. A `fact` also becomes an edge of the graph of the scope, true from `valid_from` until
    `valid_until` (None: open). `entities` are names that it mentions, besides those that are extracted.
    `origin` and `trust` can lower the level that follows from its role and from where it is written.
    """

    text: Annotated[Text, "Text of the memory.", Example("Prefers short answers.")]
    key: Annotated[Key, "Name that the caller gives it, unique in its scope."] | None = None
    role: Annotated[Label, "Role of the speaker, such as user or assistant."] | None = None
    speaker: Annotated[Label, "Name of the speaker."] | None = None
    at: Annotated[datetime | str | float | None, "Time when it was said; by default now."] = None
    kind: Annotated[
        GivenKind, "Turn of a conversation, or note: a persistent preference or instruction.", Example("note")
    ] = "turn"
    pinned: Annotated[bool, "Retention does not delete it."] = False
    fact: Annotated[Fact | None, "Fact that becomes an edge of the graph of the scope."] = None
    valid_from: Annotated[datetime | str | None, "Instant from which the fact is true."] = None
    valid_until: Annotated[datetime | str | None, "Instant until which the fact is true."] = None
    entities: ListedEntities = ()
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)
    vector: Annotated[Vector | None, "Embedding, if the caller has it."] = None
    origin: WriterOrigin | None = None
    trust: WriterTrust | None = None


@dataclass(frozen=True, slots=True)
class MemoryCitation(Checked):
    """What an extracted fact was taken from: `quote` is the characters [start, end) of a memory, verbatim.

    `model` and `prompt`, the version of the prompt, say what extracted it.
    """

    memory: Annotated[str, Example("0195f3a1c2d47e80b6a4c1d2e3f40c0c")]
    quote: str
    start: int
    end: int
    model: Annotated[str, Example("gpt-5-mini")]
    prompt: str


@dataclass(frozen=True, slots=True)
class ExtractedFact(NewMemory):
    """A fact that a chat model extracted from the memory that it cites, with which it is deleted."""

    fact_kind: FactKind = "fact"
    cites: MemoryCitation | None = None


class MemoryChanges(TypedDict, total=False):
    """The fields of a memory that an update changes; those that are not named stay."""

    text: Annotated[Text, "New text.", Example("Prefers short answers with sources.")]
    role: Annotated[Label, "Role of the speaker, such as user or assistant."] | None
    speaker: Annotated[Label, "Name of the speaker."] | None
    at: Annotated[datetime | str | float | None, "Time when it was said."]
    kind: Annotated[GivenKind, "Turn of a conversation, or note: a persistent preference or instruction."]
    pinned: Annotated[bool, "Retention does not delete it."]
    fact: Annotated[Fact | None, "Fact that becomes an edge of the graph of the scope."]
    valid_from: Annotated[datetime | str | None, "Instant from which the fact is true."]
    valid_until: Annotated[datetime | str | None, "Instant until which the fact is true."]
    entities: ListedEntities
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."]
    origin: WriterOrigin | None
    trust: WriterTrust | None


class ScopedMemoryChanges(MemoryChanges, ScopeNames, total=False):
    """The changes of an update, with the names of the scope."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory, or an earlier version of it.

    `known_from` is when this version was written, `known_until` when another one replaced it (None: it is the
    newest). `closed_by` is the memory whose fact ended this one's, `closes` are those that this one ended,
    `near` are near duplicates. `metadata` is the caller's. `superseded`, set in a list of versions, is from
    when on the next version holds in place of this one: its `valid_from` if that is later than this one's,
    else when it was written. `cites` is what a fact was extracted from (None: the memory was given).
    """

    id: StoredId
    text: Annotated[str, Example("Prefers short answers.")]
    scope: Scope
    document: Document
    kind: MemoryKind
    pinned: bool
    metadata: Annotated[Metadata, Example({"lang": "en"})]
    known_from: datetime
    known_until: datetime | None = None
    fact: Fact | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    closed_by: str | None = None
    closes: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    entities: Annotated[tuple[str, ...], Example(["backup"])] = ()
    superseded: datetime | None = None
    cites: MemoryCitation | None = None


@dataclass(frozen=True, slots=True)
class MemoryWritten:
    """The result of a write: `near` are near duplicates, `closed` the memories whose fact it ended.

    `quarantined` is the attack pattern that keeps it from all results.
    """

    id: StoredId
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    near: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    quarantined: str | None = None


@dataclass(frozen=True, slots=True)
class RecentMemory:
    """A recent turn: `text` is the part that fits, with a mark if it was `cut`, of `tokens` tokens."""

    memory: Memory
    text: StoredText
    tokens: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class MemoryQuery(Checked):
    """A query to the memories of a scope.

    `as_of` asks for the state known at that instant (None: now). A window begins with `recent` turns of the
    conversation, of at most `recent_tokens`; None stands for the numbers of the settings. Without a
    conversation there are none. `notes_share` (0 to 1) is the largest share of a budget for notes. `graph`
    adds scores of the graphs of the scope and of those that it names (None: none). `min_similarity` is the
    lowest similarity of a result, `min_confidence` (0 to 1) the lowest confidence of all.
    `all_conversations` searches all conversations of the user (and of the agent, if one is named); the
    recent turns stay those of the conversation. `min_trust` is the lowest level of a memory.
    """

    zoned: ClassVar = ("as_of",)
    query: QueryText
    scope: Annotated[Scope, "Scope of the memories."]
    collection: MemoryCollection = MEMORY
    limit: Annotated[HitLimit, "Maximum number of memories."] = DEFAULT_HITS
    as_of: AsOf | None = None
    recent: Annotated[int | None, Range(0), "Recent turns that a window begins with; by default as set."] = (
        None
    )
    recent_tokens: Annotated[TokenLimit | None, "Maximum tokens of the recent turns; by default as set."] = (
        None
    )
    notes_share: Annotated[float, Range(0, 1), "Largest share of the budget for notes."] = 0.25
    graph: Annotated[GraphExpansion | None, "How graphs are used; none: not at all."] = field(
        default_factory=GraphExpansion
    )
    min_similarity: MinSimilarity | None = None
    min_confidence: MinConfidence = 0.0
    all_conversations: Annotated[bool, "Search all conversations of the user."] = False
    min_trust: LowestTrust | None = None


class MemoryQueryOptions(TypedDict, total=False):
    """The fields of a MemoryQuery besides `query` and `scope`, as keyword arguments."""

    collection: str
    limit: int
    as_of: datetime | None
    recent: int | None
    recent_tokens: int | None
    notes_share: float
    graph: GraphExpansion | None
    min_similarity: float | None
    min_confidence: float
    all_conversations: bool
    min_trust: MinTrust | None


class ScopedQueryOptions(MemoryQueryOptions, ScopeNames, total=False):
    """The options of a MemoryQuery, with the names of its scope."""


class MemoryWindowOptions(MemoryQueryOptions, WindowFormOptions, ScopeNames, total=False):
    """The options of a window of a MemoryQuery, with the names of its scope."""


FoundAs = Literal["recent", "note", "long_term"]


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that answers a query; `score` is the sum of `parts`.

    `origins` say where it was found; `through` is the path in the graph that led to it, `why` are remarks
    (for instance that its fact has ended, and by what).
    """

    memory: Memory
    score: float
    parts: Mapping[str, float]
    origins: tuple[FoundAs, ...]
    similarity: float | None = None
    through: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the memory."""
        return self.memory.text


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """How many memories of a scope were recorded, changed and deleted after an instant."""

    recorded: int = 0
    changed: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class MemoryRetrieval:
    """The memories found, best first; `since` is set for queries with `as_of`.

    `confidence` is the probability (0 to 1) that they hold the answer. `answer` is the id of the answer
    record, if one is kept.
    """

    outcome: Outcome
    memories: tuple[MemoryHit, ...]
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    since: ChangesSince | None = None
    confidence: float = 0.0
    answer: str = ""

    def __iter__(self) -> Iterator[MemoryHit]:
        """Iterate over the memories, best first."""
        return iter(self.memories)


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """A context window from memory, within the budget: notes, memories that answer the query, recent turns.

    `tokens` is the size of `text`; the sizes of its parts are in `window.trace` and in `recent`.
    """

    text: StoredText
    tokens: int
    notes: tuple[Memory, ...]
    recent: tuple[RecentMemory, ...]
    window: ContextWindow

    def __str__(self) -> str:
        """Return the text, as a prompt has it."""
        return self.text


class MemoryListOptions(TypedDict, total=False):
    """Options of a list: `after` is the `next` of the page before, `limit` is 1 to 1,000 (default 100)."""

    filter: DocumentFilter
    after: Cursor | None
    limit: PageLimit
    newest_first: Annotated[bool, "Newest memories first."]


class ScopedListOptions(MemoryListOptions, ScopeNames, total=False):
    """The options of a list, with the names of its scope."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Memories in order, and the cursor of the next page."""

    memories: tuple[Memory, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class MemorySelection(Checked):
    """The memories of a scope to delete.

    Give exactly one of `ids`, `before` (an instant), `older_than_days` and `everything`. Pinned memories are
    deleted only by `ids`, or with `pinned`.
    """

    ids: Annotated[tuple[Identifier, ...], Length(0, 100_000), "Ids of memories."] = ()
    before: Annotated[datetime | None, "Memories that were said before."] = None
    older_than_days: Annotated[KeptDays | None, "Memories that are older.", Example(90)] = None
    everything: Annotated[bool, "All memories of the scope."] = False
    pinned: Annotated[bool, "Pinned memories too."] = False


@dataclass(frozen=True, slots=True)
class MemoryReceipt:
    """What was deleted, or with `dry_run` would be; `purged` says that no file holds the text any more.

    With `erasure_pending`, a file may still hold it, and the erasure goes on by itself. `facts` are those
    extracted from the memories, which go with them, and `answers` answer records with their texts.
    """

    memories: int
    versions: int = 0
    chunks: int = 0
    vectors: int = 0
    edges: int = 0
    ids: Annotated[tuple[str, ...], Example(["0195f3a1c2d47e80b6a4c1d2e3f40517"])] = ()
    dry_run: bool = False
    purged: bool = False
    facts: int = 0
    erasure_pending: bool = False
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Retention(Checked):
    """The maximum age and number of memories in each conversation of a scope (None: no limit).

    Pinned memories and notes are not counted and never deleted.
    """

    days: Annotated[KeptDays | None, "Days that memories are kept.", Example(30)] = None
    max_count: Annotated[
        int | None, Range(0, 1_000_000_000), "Memories that are kept of each conversation."
    ] = None


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The retention rule of a scope, and when it was last applied."""

    scope: Scope
    retention: Retention
    collection: StoredCollection
    last_run: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """Numbers of a conversation: its memories, and the times of the first and the last."""

    scope: Scope
    memories: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Numbers of a scope; `tokens` are of o200k_base, `pending` memories are not embedded yet."""

    memories: int
    notes: int
    pinned: int
    facts: int
    versions: int
    conversations: int
    entities: int
    tokens: int
    pending: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryExport:
    """Memories as lines of JSON, complete with times, versions and entities, and the cursor of the rest.

    `left_out` of the last page counts by name what no line contains.
    """

    lines: Annotated[tuple[str, ...], Example(['{"text": "Prefers short answers.", "kind": "note"}'])]
    next: str | None
    left_out: Mapping[str, int] = field(default_factory=dict)


def fact_ends(metadata: Metadata) -> tuple[str, ...]:
    """Return the names that the fact in a memory's metadata connects."""
    fact = metadata.get(FACT)
    ends = (fact.get("subject"), fact.get("object")) if isinstance(fact, Mapping) else ()
    return tuple(end for end in ends if isinstance(end, str))


def stored_entities(metadata: Metadata) -> tuple[str, ...]:
    """Return the entities that a memory was stored with."""
    names = metadata.get(ENTITIES)
    if isinstance(names, list):
        return tuple(name for name in names if isinstance(name, str))
    return ()
