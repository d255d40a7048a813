"""Batch after batch to a summary of all, with what failed on the way."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from conspectus.errors import ChatAuthFailed, ChatError, ChatModelUnknown, ChatNotConfigured
from conspectus.model.streams import BatchSummary
from conspectus.streams.concurrency import all_of
from conspectus.streams.summarizer import CaptionText, Summarizer
from conspectus.streams.summary_batches import Batch

logger = logging.getLogger(__name__)

HOPELESS: Final = (ChatAuthFailed, ChatModelUnknown, ChatNotConfigured)
"""Errors after which no other question will be answered either."""


class NotKept(Exception):
    """A summary is not stored, and no model is to be asked for it."""

    code: Final = "not_summarised"
    told: Final = "It was not summarised yet, or could not be."


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of each batch, and of all together; `fault` is the first error, if there was one."""

    batches: tuple[BatchSummary, ...]
    whole: CaptionText | None
    fault: ChatError | NotKept | None


@dataclass(frozen=True, slots=True)
class _Ended:
    batch: Batch
    told: CaptionText | None
    fault: ChatError | NotKept | None = None

    def summary(self) -> BatchSummary:
        """As it is reported; the error in words without internals."""
        start, end = self.batch.times
        number, captions = self.batch.number, len(self.batch.captions)
        if self.told is not None:
            return BatchSummary(number, start, end, captions, "done", self.told.text)
        code, error = (None, None) if self.fault is None else (self.fault.code, self.fault.told)
        return BatchSummary(number, start, end, captions, "failed", "", code, error)


async def in_batches(
    writer: Summarizer, batches: Sequence[Batch], done: Callable[[int], None], *, workers: int, together: bool
) -> Finished:
    """Each batch by itself, as many at once as there are workers; then all of them, if `together`."""
    waiting = iter(batches)
    ended: list[_Ended] = []

    async def work() -> None:
        for batch in waiting:
            ended.append(await _attempt(batch, writer.batch(batch)))
            done(len(ended))

    await all_of([work() for _ in range(min(workers, len(batches)))])
    ended.sort(key=lambda each: each.batch.number)
    told = [(each.told, each.batch) for each in ended if each.told is not None]
    whole = await writer.whole(told) if together and told else None
    return _finished(ended, whole)


async def in_turn(writer: Summarizer, batches: Sequence[Batch], done: Callable[[int], None]) -> Finished:
    """One batch after the other, each with the summary of those before it."""
    told: CaptionText | None = None
    ended: list[_Ended] = []
    for batch in batches:
        ended.append(await _attempt(batch, writer.refined(told, batch)))
        told = ended[-1].told or told
        done(len(ended))
    return _finished(ended, told)


def _finished(ended: Sequence[_Ended], whole: CaptionText | None) -> Finished:
    fault = next((each.fault for each in ended if each.fault is not None), None)
    return Finished(tuple(each.summary() for each in ended), whole, fault)


async def _attempt(batch: Batch, work: Awaitable[CaptionText]) -> _Ended:
    try:
        return _Ended(batch, await work)
    except HOPELESS:
        raise
    except ChatError as fault:
        logger.warning("batch %d was not summarised: %s", batch.number, fault)
        return _Ended(batch, None, fault)
    except NotKept as fault:
        return _Ended(batch, None, fault)
