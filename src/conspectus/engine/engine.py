"""The whole product on one store."""

from conspectus.engine.components import EngineComponents, EngineCore
from conspectus.engine.memory_deletion import MemoryDeletion
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.ports import CountTokens
from conspectus.ports.chat import ChatRegistry
from conspectus.ports.jobs import IdempotencyStore
from conspectus.ports.rate_counters import RateCounters


class Engine(MemoryDeletion):
    """Open it with `conspectus.open`; it is safe to use from many tasks.

    It answers one person; `answering` gives an engine on the same store for another one.
    """

    def __init__(self, parts: EngineComponents) -> None:
        super().__init__(EngineCore(parts), LOCAL_OWNER)

    def answering(self, person: Person) -> "Engine":
        """The same store, as that person may use it."""
        view = Engine.__new__(Engine)
        super(Engine, view).__init__(self._core, person)
        return view

    def counter(self, tokenizer: str = "o200k_base") -> CountTokens:
        """What counts tokens as that tokenizer does. Raises UnknownTokenizer."""
        return self._parts.counter(tokenizer)

    @property
    def replays(self) -> IdempotencyStore:
        """The answers that front ends keep, so that a write that is sent twice is done once."""
        return self._parts.replays

    @property
    def allowances(self) -> RateCounters:
        """What front ends count requests by, so that the processes of a store have one count."""
        return self._parts.allowances

    @property
    def spoken(self) -> ChatRegistry | None:
        """The answers of chats that front ends make known to other processes, if there may be any."""
        return self._parts.spoken

    async def finish_purges(self) -> None:
        """Have finished in the background what a process was killed over while it purged."""
        if self._does_background_work and await self._core.records.unfinished_purges():
            self._core.finish_purges()

    async def resume(self, *, rested: float = 0.0) -> None:
        """Go on embedding what has no vector yet, where no error ended it within `rested` seconds."""
        for place in await self._sight.places():
            await self._embed(place.collection, wait=False, rested=rested)

    async def close(self) -> None:
        """Stop background work and release every store; what is unfinished goes on at the next opening."""
        await self._core.close()
