"""What is asked of memories: whose they are, what is to be remembered, recalled and forgotten."""

from typing import Annotated, Any, Literal

from pydantic import Field

from conspectus.memory.retention import MOST_DAYS
from conspectus.memory.retention import MOST_MEMORIES as MOST_KEPT
from conspectus.model.filter import EVERYTHING, Filter, filter_from_json
from conspectus.model.memory import (
    MEMORY,
    MemoryClass,
    MemoryQuery,
    MemorySelection,
    NewMemory,
    Retention,
    Scope,
)
from conspectus.model.query import Budget
from conspectus.text.vectors import MOST_DIMENSIONS
from conspectus.web.schemas.base import (
    Finite,
    Identifier,
    Instant,
    Int64,
    JsonObject,
    Name,
    Question,
    RequestModel,
    Share,
    Text,
    Where,
)
from conspectus.web.schemas.graphs import FactBody, GraphAskBody, Moment
from conspectus.web.schemas.records import Label
from conspectus.web.schemas.search import BudgetBody, MinSimilarity, Tokens, budget_of

Days = Annotated[float, Field(ge=0, le=MOST_DAYS, allow_inf_nan=False)]
MOST_MEMORIES = 10_000
MOST_ENTITIES = 1_000
MOST_LINES = 10_000
MOST_FORGOTTEN = 100_000


class ScopeFields(RequestModel):
    """Whose memories; in reading, an agent or a conversation that is not named is any."""

    user: Name | None = Field(None, description="None: memories of no user, never those of all.")
    agent: Name | None = None
    conversation: Name | None = None

    def scope(self) -> Scope:
        """The scope as the engine takes it."""
        return Scope(self.user, self.agent, self.conversation)


class ScopeBody(ScopeFields):
    """Whose memories."""


class ScopedBody(ScopeFields):
    """Whose memories, in which collection."""

    collection: Name = MEMORY


class MemoryFields(RequestModel):
    """What can be said of a memory, and changed later."""

    role: Label | None = Field(None, examples=["user"])
    speaker: Label | None = None
    at: Moment | Finite | None = Field(
        None, description="When it was said: an ISO 8601 time, or seconds since 1970; by default now."
    )
    kind: MemoryClass = Field("turn", description="A note is a standing one, considered for every window.")
    pinned: bool = Field(False, description="No retention deletes it.")
    fact: FactBody | None = None
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    entities: list[Label] = Field(default=[], max_length=MOST_ENTITIES, description="Names it mentions.")
    metadata: JsonObject = Field(default={})

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the engine takes them."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if self.fact is not None:
            fields["fact"] = self.fact.fact()
        if "entities" in fields:
            fields["entities"] = tuple(self.entities)
        return fields


class MemoryBody(MemoryFields):
    """Something to remember, word for word; of a key that is stored already, it is the newest version."""

    text: Text = Field(examples=["I prefer tea to coffee."])
    key: Label | None = None
    vector: list[Finite] | None = Field(None, min_length=1, max_length=MOST_DIMENSIONS)

    def memory(self) -> NewMemory:
        """The memory as the engine takes it."""
        vector = None if self.vector is None else tuple(self.vector)
        return NewMemory(**{**self.given(), "vector": vector})


class MemoryChange(MemoryFields):
    """The fields to change of a memory; those that are not named stay. Metadata are replaced whole."""

    text: Text = ""


class MemoriesBody(ScopedBody):
    """Memories to store, in order."""

    memories: list[MemoryBody] = Field(max_length=MOST_MEMORIES)
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class MemoryCountBody(ScopedBody):
    """Which memories to count."""

    where: Where | None = None

    def chosen(self) -> Filter:
        """The filter as the engine takes it."""
        return EVERYTHING if self.where is None else filter_from_json(self.where)


class RecallBody(ScopedBody):
    """What is to be recalled."""

    text: Question = Field(examples=["What does Ann like to drink?"])
    limit: Int64 = Field(10, description="Most memories.")
    as_of: Instant | None = Field(None, description="What was known at that instant; by default now.")
    recent: Int64 | None = Field(None, description="So many of the last turns come first.")
    recent_tokens: Int64 | None = Field(None, description="Of at most so many tokens.")
    notes_share: Share = Field(0.25, description="The most of a budget that standing notes may take.")
    graph: GraphAskBody | None = Field(
        default_factory=lambda: GraphAskBody.model_validate({}), description="Null: the graph has no say."
    )
    floor: MinSimilarity | None = None
    everywhere: bool = Field(
        False, description="Recall from all conversations; the last turns stay those of the one named."
    )

    def question(self) -> MemoryQuery:
        """The question as the engine takes it."""
        return MemoryQuery(
            self.text,
            self.scope(),
            self.collection,
            self.limit,
            self.as_of,
            self.recent,
            self.recent_tokens,
            self.notes_share,
            None if self.graph is None else self.graph.asked(),
            self.floor,
            self.everywhere,
        )


class MemoryContextBody(RecallBody):
    """What is to be recalled, and the tokens for it."""

    budget: Tokens | BudgetBody = Field(4_000, description="Tokens counted with o200k_base, or a budget.")
    renderer: Literal["text", "xml", "json", "messages", "guarded"] = "text"

    def allowed(self) -> Budget:
        """The budget as the engine takes it."""
        return budget_of(self.budget)


class ForgetBody(ScopedBody):
    """Which memories are to go: by exactly one of ids, before, older_than_days and everything."""

    ids: list[Identifier] = Field(default=[], max_length=MOST_FORGOTTEN)
    before: Instant | None = Field(None, description="Those said before that instant.")
    older_than_days: Days | None = None
    everything: bool = False
    pinned: bool = Field(False, description="Pinned ones too; of ids they always go.")
    preview: bool = Field(False, description="Delete nothing and say what would go.")
    purge: bool = Field(False, description="Answer when no file holds them any more.")

    def what(self) -> MemorySelection:
        """As the engine takes it."""
        return MemorySelection(
            tuple(self.ids), self.before, self.older_than_days, self.everything, self.pinned
        )


class RetentionBody(ScopedBody):
    """How long, and how many, turns of each conversation of a scope are kept; null is no bound."""

    days: Days | None = None
    most: Annotated[int, Field(ge=0, le=MOST_KEPT)] | None = None

    def retention(self) -> Retention:
        """As the engine takes it."""
        return Retention(self.days, self.most)


class ApplyRetentionBody(RequestModel):
    """Which retentions are to be carried out now; by default all of the collection."""

    collection: Name = MEMORY
    scope: ScopeBody | None = None
    preview: bool = Field(False, description="Delete nothing and say what would go.")


class RetentionJobBody(RequestModel):
    """Of which collection all retentions are to be carried out."""

    collection: Name = MEMORY


class MemoryLinesBody(RequestModel):
    """Memories as lines of an export; without a scope, they go where the lines say."""

    lines: list[Text] = Field(max_length=MOST_LINES)
    collection: Name = MEMORY
    scope: ScopeBody | None = None
