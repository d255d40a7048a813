"""A program to be killed: it has memories read for facts by a job, and writes down each question it puts.

The job's id is the first line on standard output; each line after it is the memory of a question.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

from conspectus.model.results import Message
from conspectus.testing.chat_models import ScriptedChatModel
from tests.extracting import found, message_in, opened
from tests.memories import ANN

MEMORIES = 12


def answer_slowly(messages: Sequence[Message]) -> list[str]:
    """An answer that takes a moment, so that there is one to be killed in."""
    print(message_in(messages), flush=True)
    time.sleep(0.02)
    return found(messages)


async def main(path: str) -> None:
    async with opened(path, ScriptedChatModel(answer_slowly)) as engine:
        memories = [f"Ann lives_in Town{number}. Ann likes: tea{number}." for number in range(MEMORIES)]
        await engine.memory.add(memories, scope=ANN)
        job = await engine.memory.extract()
        print(f"job {job.id}", flush=True)
        await engine.jobs.wait(job.id)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
