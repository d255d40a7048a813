"""A program to be killed: it adds, replaces and deletes documents and says what was acknowledged.

Each line on standard output is an acknowledged operation: its number, `put` or `delete`, key and version.
A document's text names its key and version in every chunk, so that a mixture would be seen.
"""

import asyncio
import random
import sys
from dataclasses import replace

import conspectus
from conspectus.settings import Settings

KEYS = 12


def subject(key: int) -> str:
    """A word that no other key's text has, not even in part."""
    return "subject" + "abcdefghijkl"[key]


def text_of(key: int, version: int) -> str:
    """Text of several chunks, every one of which holds the key's and the version's own words."""
    return "\n\n".join(
        f"{subject(key)} edition{key}x{version} " + "filler " * 20 for _ in range(3 + version % 5)
    )


async def main(path: str, seed: int) -> None:
    chance = random.Random(seed)
    settings = replace(Settings(), embedder="none", chunk_size=200, chunk_overlap=0, tail_chunks=40)
    async with conspectus.open(path, settings=settings) as engine:
        for version in range(seed * 100_000, (seed + 1) * 100_000):
            key = chance.randrange(KEYS)
            if chance.random() < 0.25:
                page = await engine.documents.list(limit=1000)
                mine = [document.id for document in page.documents if document.key == str(key)]
                print("try", "delete", key, version, flush=True)
                await engine.documents.delete(mine)
                print("done", "delete", key, version, flush=True)
            else:
                print("try", "put", key, version, flush=True)
                new = conspectus.NewDocument(text=text_of(key, version), key=str(key))
                await engine.add(new)
                print("done", "put", key, version, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
