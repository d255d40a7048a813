"""What the queue of shared batches is tested with: a model that counts, and a clock that is moved by hand."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np

from conspectus.errors import ProviderError
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

POISON = "poison"
TURNS = 50
"""Steps of the event loop after which everything that can go on without time passing has."""


def row_of(text: str, kind: str) -> list[float]:
    """The vector of a text: whoever gets another one's row can tell."""
    number = float(sum(ord(letter) * (number + 1) for number, letter in enumerate(text)))
    return [number, float(len(text)), 1.0 if kind == "query" else 0.0]


class CountingModel:
    """Embeds each batch with the next outcome of `plan`, if there is one, and refuses any with POISON.

    An outcome is an error to raise, None for an answer, or an event to wait for before the answer.
    """

    def __init__(self, *outcomes: ProviderError | asyncio.Event | None) -> None:
        self.plan = deque(outcomes)
        self.batches: list[tuple[str, list[str]]] = []
        self.embedded: list[str] = []
        self.closed = False

    @property
    def space(self) -> EmbeddingSpace:
        """A space of three dimensions."""
        return EmbeddingSpace("counting", 3)

    @property
    def max_texts(self) -> int:
        """More than any test shares, unless it says otherwise."""
        return 1_000

    @property
    def sizes(self) -> list[int]:
        """How many texts each batch had."""
        return [len(texts) for _, texts in self.batches]

    async def embed_batch(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """The rows of the texts, or the planned outcome."""
        self.batches.append((kind, list(texts)))
        outcome = self.plan.popleft() if self.plan else None
        if isinstance(outcome, asyncio.Event):
            await outcome.wait()
        elif outcome is not None:
            raise outcome
        if any(POISON in text for text in texts):
            raise ProviderError("counting", "refused a text", status=400)
        self.embedded += texts
        return np.array([row_of(text, kind) for text in texts], dtype=np.float32)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


class ManualClock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        """Wait until so much time was let pass."""
        self.slept.append(seconds)
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking every sleeper at its moment."""
        end = self.now + seconds
        await self.settle()
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= end]:
            moment, woken = min(due, key=lambda sleeper: sleeper[0])
            self._sleepers.remove((moment, woken))
            self.now = moment
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self.now = end
