"""An agent's memory: a short term of so many turns and tokens, and a long term of everything."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Unpack

from conspectus.bootstrap import local_counter
from conspectus.errors import InvalidInput, ProviderError
from conspectus.facades.agent.mapping import WHOSE, AgentScope, Told, known, recalled, scope_of
from conspectus.facades.agent.memory_reads import TURN
from conspectus.facades.agent.query import MOST_ASKED, AgentQuery, number, question_of
from conspectus.facades.agent.session import desk_of, is_new
from conspectus.facades.agent.transfer import Carrying
from conspectus.model.memory import MEMORY, MemoryQuery, Retention, Scope
from conspectus.settings import Settings, context_token_limit

SHORT_TERM: Final = 10
SHORT: Final = "short_term"
TOKENIZER: Final = "o200k_base"


class MemoryOptions(AgentScope, total=False):
    """How an agent's memory is made.

    The short term are the last `short_term_limit` turns of at most `token_limit` tokens, as the `tokenizer`
    counts (default: CONTEXT_TOKEN_LIMIT of the environment, else 2,000). With `retention_days` older ones are
    deleted, with `max_memories` the oldest beyond that number. `collection` is where in the store they are.
    """

    token_limit: int | None
    short_term_limit: int
    retention_days: float | None
    max_memories: int | None
    tokenizer: str
    collection: str


class AsyncAgentMemory(Carrying):
    """Memories of a user, an agent and a conversation; each call may name others than it was made with.

    `vector_store` is a path, an engine of conspectus.open, connect or sync, another part of an agent's
    context, or None for a store that is gone when it is closed.
    """

    def __init__(self, vector_store: Any = None, **options: Unpack[MemoryOptions]) -> None:
        known(options, frozenset(MemoryOptions.__annotations__))
        super().__init__(
            desk_of(vector_store, options.get("collection", MEMORY)),
            scope_of(Scope(), {name: value for name, value in options.items() if name in WHOSE}),
            token_limit=number("token_limit", options.get("token_limit"), _default_token_limit()),
            short_term_limit=number("short_term_limit", options.get("short_term_limit"), SHORT_TERM),
            tokenizer=options.get("tokenizer", TOKENIZER),
        )
        self.owns = is_new(vector_store)
        self._count = local_counter(self.tokenizer)
        self.retention = _retention(options.get("retention_days"), options.get("max_memories"))

    async def retrieve(self, query: str, max_results: int = 5, **asking: Unpack[AgentQuery]) -> Told:
        """The memories that answer a question, best first, with what their scores are made of.

        They cost at most `max_tokens` together (None: any number), by default the token limit; only the best
        one is given in any case by default.
        """
        question = question_of(query, max_results, asking, self.scope)
        return self.within(await self.recalled(question), asking)

    async def search(self, query: str, limit: int = 10, **asking: Unpack[AgentQuery]) -> Told:
        """The same under another name."""
        return await self.retrieve(query, limit, **asking)

    async def find_similar(self, content: str, limit: int = 5, **whose: Unpack[AgentScope]) -> Told:
        """Memories that are like a text, or like the memory of that id, which is left out."""
        scope = scope_of(self.scope, whose)
        stored = await self._find(content, scope)
        text = content if stored is None else stored.text
        found = await self.recalled(question_of(text[:MOST_ASKED], limit + 1, {}, scope))
        return [each for each in found if stored is None or each["id"] != stored.id][:limit]

    async def recalled(self, question: MemoryQuery) -> Told:
        """What answers a question."""
        if not question.limit:
            return []
        asked = replace(question, collection=self.desk.collection)
        await self.settled()
        found = await self.desk.run(lambda engine: engine.memory.recall(asked))
        answers = [recalled(each) for each in found.memories]
        if answers and question.as_of is None:
            last = {each.id for each in await self._short_term(question.scope)}
            for each in answers:
                if each["id"] in last:
                    each["source"], each["sources"] = SHORT, [SHORT, *each["sources"]]
        return answers

    async def settled(self) -> None:
        """Wait until what was stored here is embedded; without an embedder it is found by its words alone."""
        place = self.desk.home
        written = place.written
        if place.settled < written:
            with suppress(ProviderError):
                await self.flush()
            place.settled = max(place.settled, written)

    def within(self, found: Told, asking: AgentQuery) -> Told:
        """Those that fit into so many tokens together, whole, the first ones first."""
        allowed = asking.get("max_tokens", self.token_limit)
        if allowed is None:
            return found
        left, kept = number("max_tokens", allowed, 0), []
        for rank, each in enumerate(found):
            cost = self._count(each["content"])
            if (cost <= left and left) or (rank == 0 and "max_tokens" not in asking):
                kept.append(each)
                left -= cost
        return kept

    async def apply_retention(self, *, preview: bool = False, **whose: Unpack[AgentScope]) -> dict[str, Any]:
        """Carry out the retention of this context now, and say what went; with `preview`, what would."""
        gone = await self.prune(preview=preview, **whose)
        return {"deleted": 0 if preview else len(gone), "ids": gone, "preview": preview}

    async def retain(self, **whose: Unpack[AgentScope]) -> None:
        """Have the store itself keep to this retention from now on, on its own schedule.

        There `max_memories` counts for each conversation. Without a retention, one that it keeps ends.
        """
        scope = scope_of(self.scope, whose)
        rule = None if self.retention == Retention() else self.retention
        await self.desk.run(
            lambda engine: engine.retention.set(rule, scope=scope, collection=self.desk.collection)
        )

    async def flush(self) -> int:
        """Wait until everything is found by meaning too, and say how many passages came meanwhile."""
        return await self.desk.run(lambda engine: engine.documents.settle(collection=self.desk.collection))

    async def health(self) -> dict[str, Any]:
        """Whether the store can be read, and how much waits to be found by meaning. Raises what is wrong."""
        numbers = await self._numbers(self.scope)
        return {"status": "ok", "memories": numbers["memories"], "pending": numbers["pending"]}

    async def _prune_short_term_memory(self, **whose: Unpack[AgentScope]) -> int:
        """How many turns stand behind the short term now; they stay in the long term.

        Which turns these are follows from the two limits at every look: there is nothing to carry out.
        """
        turns = await self._count_where(scope_of(self.scope, whose), TURN)
        return turns - len(await self.short_term(**whose))


def _default_token_limit() -> int:
    given = context_token_limit()
    return Settings().recent_memory_tokens if given is None else given


def _retention(days: float | None, most: int | None) -> Retention:
    if days is not None and days < 0:
        raise InvalidInput("retention_days", "must not be negative")
    return Retention(days, None if most is None else number("max_memories", most, 0))
