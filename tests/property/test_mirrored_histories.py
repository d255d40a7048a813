"""Histories of permissions at a remote: after each sync, everybody reads what the remote lets them read."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tests.stores import SETTINGS, Servers
from tests.support.milvus_server import MilvusProcess
from tests.support.note_server import NoteServer, install_note_connector
from tests.support.postgres_server import PostgresProcess

from conspectus import Engine
from conspectus.connectors import EVERYONE
from conspectus.errors import NotFound
from conspectus.model.access import LOCAL_OWNER, Person, Principal
from conspectus.testing.embedders import HashedEmbedder

PASSWORD = "hunter2"
PEOPLE = ("ann", "ben", "cy")
GROUPS = ("group:a", "group:b", "group:c")
KEYS = tuple(f"note{number}" for number in range(8))
MIRRORED = replace(SETTINGS, secret_key=Fernet.generate_key().decode(), job_max_attempts=1)


@pytest.fixture(scope="session")
def servers(postgres: PostgresProcess, milvus: MilvusProcess) -> Servers:
    return Servers(postgres, milvus)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoteServer]:
    install_note_connector(tmp_path / "packages", monkeypatch)
    with NoteServer("office", PASSWORD, people=set(PEOPLE)).run() as running:
        yield running


@dataclass
class Scene:
    """A collection that mirrors a server, and the views of its people."""

    owner: Engine
    notes: NoteServer
    views: dict[str, Engine] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)
    comparisons: int = 0

    async def sync(self) -> str:
        job = await self.owner.connections.sync("office", collection="team")
        ended = await self.owner.jobs.wait(job.id)
        assert ended.state in {"succeeded", "failed"}, ended
        return ended.state

    async def compare(self) -> None:
        """Compare each way to read, for each person and note, with the answer of the server."""
        for person, view in self.views.items():
            expected = {key for key in self.notes.notes if self.notes.may_read(person, key)}
            for way, readable in (await read_in_all_ways(view)).items():
                assert readable == expected, (person, way, self.notes.notes, self.notes.groups)
                self.comparisons += len(KEYS)
            listed = (await view.documents.list(collection="team", limit=100)).documents
            for document in listed:
                self.ids.setdefault(document.key, set()).add(document.id)
            allowed = {document.id for document in listed}
            for document_id in set().union(*self.ids.values()) - allowed:
                with pytest.raises(NotFound):
                    await view.documents.get(document_id)


async def read_in_all_ways(engine: Engine) -> dict[str, set[str]]:
    """The keys of the notes that each way to read shows."""
    retrieval = await engine.search.retrieve("lantern", collection="team", limit=100)
    window = await engine.window("lantern", 10_000, collection="team")
    documents = (await engine.documents.list(collection="team", limit=100)).documents
    lines = await engine.files.grep("lantern", path="/team")
    texts = [await engine.documents.get_text(document.id) for document in documents]
    return {
        "search": {hit.document.key for hit in retrieval.hits},
        "window": keys_in(window.text),
        "list": {document.key for document in documents},
        "grep": {file.title for file in lines.files},
        "read": keys_in(" ".join(texts)),
    }


def keys_in(text: str) -> set[str]:
    return {word for word in text.replace(".", " ").split() if word in KEYS}


@asynccontextmanager
async def open_scene(servers: Servers, store: str, folder: Path, notes: NoteServer) -> AsyncIterator[Scene]:
    settings = replace(MIRRORED, row_security="on") if store.startswith("postgresql") else MIRRORED
    async with servers.opened(store, folder, HashedEmbedder(), settings=settings) as owner:
        await owner.connections.create(
            "office",
            "guarded",
            {"server": "office"},
            credentials={"password": PASSWORD},
            collection="team",
        )
        scene = Scene(owner, notes)
        for name in ("ann", "ben"):
            user = await owner.people.create_user(name)
            await owner.access.grant("team", Principal("user", user.id), "viewer")
            await owner.connections.map_person("office", name, name, collection="team")
            scene.views[name] = owner.as_person(Person(name, id=user.id))
        unmapped = await owner.people.create_user("dora")
        await owner.access.grant("team", Principal("user", unmapped.id), "manager")
        scene.views["dora"] = owner.as_person(Person("dora", id=unmapped.id))
        scene.views["owner"] = owner.as_person(LOCAL_OWNER)
        yield scene


def change(notes: NoteServer, dice: random.Random) -> None:
    """Make one change at the server, as its users may."""
    viewers = {name for name in (*PEOPLE, *GROUPS, EVERYONE) if dice.random() < 0.25}
    key, notebook = dice.choice(KEYS), dice.choice(["Main", "Other"])
    match dice.randrange(6):
        case 0:
            notes.set_group(dice.choice(GROUPS), viewers - {EVERYONE})
        case 1 if key in notes.notes:
            notes.delete(key)
        case 2 | 3 if key in notes.notes:
            notes.share(key, viewers)
        case _:
            text = f"The lantern {key} has oil for {dice.randrange(100)} nights."
            notes.put(key, notebook, text, viewers)


@pytest.mark.parametrize(
    ("store", "seed", "steps"),
    [
        ("sqlite+segments", 1, 12),
        ("sqlite+segments", 2, 12),
        ("postgresql+pgvector", 3, 4),
        ("sqlite+milvus", 4, 4),
    ],
)
async def test_everybody_reads_what_the_remote_lets_them_read(
    servers: Servers, tmp_path: Path, notes: NoteServer, store: str, seed: int, steps: int
) -> None:
    dice = random.Random(seed)
    async with open_scene(servers, store, tmp_path, notes) as scene:
        for _ in range(steps):
            for _ in range(dice.randrange(1, 4)):
                change(notes, dice)
            await scene.sync()
            await scene.compare()
    assert scene.comparisons > 0
