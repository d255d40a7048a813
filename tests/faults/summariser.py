"""A program to be killed: it has a stream summarised by a job, and writes down each question it puts.

The job's id is the first line on standard output; each line after it is the first scene of a question.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import conspectus
from conspectus.model.results import Message
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from tests.films import indexed, material, told

SETTINGS = replace(
    Settings(),
    embedder="none",
    log_level="critical",
    job_backoff_ms=20,
    job_grace_seconds=1,
    summary_concurrency=2,
)
BATCHES = 20
REQUEST = {"stream": "film"}


def answer_slowly(messages: Sequence[Message]) -> list[str]:
    """An answer that takes a moment, so that there is one to be killed in."""
    print(material(messages)[0], flush=True)
    time.sleep(0.02)
    return told(messages)


async def main(path: str) -> None:
    model = ScriptedChatModel(answer_slowly)
    async with conspectus.open(path, settings=SETTINGS, chat_model=model) as engine:
        await engine.streams.add_captions(indexed(*range(6 * BATCHES)), stream="film")
        job = await engine.summaries.start_job(**REQUEST)
        print(job.id, flush=True)
        await engine.jobs.wait(job.id)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
