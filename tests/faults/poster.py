"""A program to be killed, or to post beside another one: it says what was acknowledged.

`post CHANNEL SEED COUNT` posts, edits and deletes messages and answers those of others; each line on standard
output is an acknowledged operation: `put` or `delete`, its key, and the text. `import PATH` takes in an
archive and says `imported`.
"""

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus.engine import Engine
from conspectus.model.channels import NewMessage
from conspectus.model.ids import DocumentId
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", tail_chunks=40, log_level="critical")
WORDS = ["deploy", "billing", "restart", "key", "settings", "lunch", "soup", "server", "token", "login"]
KNOWN = 30
"""So many of the newest messages may be answered."""


async def post_messages(engine: Engine, channel: str, seed: int, count: int) -> None:
    """Messages under keys of the seed's own, answers to those of all."""
    chance = random.Random(seed)
    mine: list[str] = []
    ids: dict[str, DocumentId] = {}
    for number in range(count):
        key, text = f"{seed}-{number}", " ".join(chance.choices(WORDS, k=5)) + f" n{seed}x{number}"
        earlier = await engine.channels.list_messages(channel=channel, limit=KNOWN) if number % 5 == 1 else []
        answered = chance.choice(earlier).document.key if earlier else None
        if mine and chance.random() < 0.2:
            key = chance.choice(mine)
        print("try", "put", key, text, flush=True)
        (written,) = await engine.channels.add_messages(
            NewMessage(text, key=key, author=f"author{seed}", reply_to=answered), channel=channel
        )
        print("done", "put", key, text, flush=True)
        mine.append(key)
        ids[key] = written.id
        if chance.random() < 0.1:
            gone = mine.pop(chance.randrange(len(mine)))
            await delete_message(engine, gone, ids[gone])
            mine = [posted for posted in mine if posted != key] if key not in mine else mine


async def delete_message(engine: Engine, key: str, document: DocumentId) -> None:
    """Delete a message, if it is there."""
    print("try", "delete", key, "-", flush=True)
    await engine.documents.delete([document])
    print("done", "delete", key, "-", flush=True)


async def main(store: str, what: str, *arguments: str) -> None:
    async with conspectus.open(store, settings=SETTINGS) as engine:
        if what == "import":
            print("ready", flush=True)
            await engine.channels.import_archive(Path(arguments[0]))
            print("imported", flush=True)
        else:
            await engine.collections.get_or_create_source(arguments[0], kind="channel")
            print("ready", flush=True)
            await post_messages(engine, arguments[0], int(arguments[1]), int(arguments[2]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
