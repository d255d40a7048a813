"""A program to be killed: it accepts jobs as fast as it can, and says which.

Each line on standard output is a job that was accepted: its id and the number of what it takes in.
"""

import asyncio
import sys
from dataclasses import replace

import conspectus
from conspectus.model.jobs import Upload
from conspectus.settings import Settings

SETTINGS = replace(
    Settings(), embedder="none", fetch_allowed_networks="127.0.0.1", job_backoff_ms=20, job_grace_seconds=5
)
SECRET = "s3cr3t-of-a-killed-job"


def text_of(number: int) -> str:
    """The text of a page, or of a file where the number is one below a multiple of four."""
    return f"This is number {number}, and there is none like it."


async def main(path: str, base: str, first: int, count: int) -> None:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        await engine.jobs.start()
        for number in range(first, first + count):
            if number % 4 == 3:
                job = await engine.jobs.ingest_files([Upload(f"files/{number}", text_of(number).encode())])
            else:
                job = await engine.jobs.ingest_url(f"{base}/{number}", headers={"X-Secret": SECRET})
            print(job.id, number, flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
