"""Credentials of connections: sealed at rest, never shown, and asked for anew if the key is lost."""

import asyncio
import json
import logging
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tests.support.note_server import Note, NoteServer, install_note_connector

import conspectus
from conspectus import Engine, Settings
from conspectus.bootstrap.transfer import back_up
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import Person, Principal
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job

OLD, NEW, FOREIGN = (Fernet.generate_key().decode() for _ in range(3))
SETTINGS = Settings(embedder="none", job_max_attempts=1, secret_key=OLD)
PASSWORD = "hunter2-correct-horse"
OPTIONS = {"server": "office"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoteServer]:
    install_note_connector(tmp_path / "packages", monkeypatch)
    with NoteServer("office", PASSWORD, {"safe": Note("Main", "The safe is open.")}).run() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@asynccontextmanager
async def open_store(store: Path, **settings: str) -> AsyncIterator[Engine]:
    async with conspectus.open(store, settings=replace(SETTINGS, **settings)) as engine:
        yield engine


async def connect(engine: Engine, password: str = PASSWORD) -> Connection:
    return await engine.connections.create(
        "notes", "notes", OPTIONS, credentials={"password": password}, collection="team"
    )


async def sync(engine: Engine) -> Job:
    job = await engine.connections.sync("notes", collection="team")
    return await engine.jobs.wait(job.id)


async def find_connection(engine: Engine) -> Connection:
    (connection,) = await engine.connections.list(collection="team")
    return connection


def read_all_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_a_sync_opens_what_nobody_sees(
    server: NoteServer, store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_store(store) as engine:
        created = await connect(engine)
        assert (created.has_credentials, created.options) == (True, OPTIONS)
        assert (await sync(engine)).state == "succeeded"
        assert len((await engine.documents.list(collection="team")).documents) == 1
        connection = await find_connection(engine)
        assert connection.has_credentials
        audit = await engine.access.list_audit()
        answers = repr((created, connection, audit, engine.connections))
        answers += repr(await engine.connections.list_connectors())
        assert PASSWORD not in answers
    await asyncio.to_thread(back_up, store, tmp_path / "backup.zip", settings=SETTINGS)
    with zipfile.ZipFile(tmp_path / "backup.zip") as archive:
        backed_up = b"".join(archive.read(name) for name in archive.namelist())
    assert PASSWORD not in caplog.text
    for stored in (read_all_files(store), backed_up):
        assert PASSWORD.encode() not in stored
        assert OLD.encode() not in stored


async def test_without_a_key_nothing_is_stored(server: NoteServer, store: Path) -> None:
    async with open_store(store, secret_key="") as engine:
        with pytest.raises(InvalidInput, match="secret_key: is not set, so no credentials can be stored"):
            await connect(engine)
        assert list(await engine.connections.list(collection="team")) == []


async def test_a_key_that_is_none_is_refused(server: NoteServer, store: Path) -> None:
    async with open_store(store, secret_key="not a key") as engine:
        with pytest.raises(InvalidInput, match="secret_key: has a key that is not 32"):
            await connect(engine)


async def test_keys_come_from_a_file(server: NoteServer, store: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{NEW}\n{OLD}\n")
    async with open_store(store, secret_key="", secret_key_file=str(keys)) as engine:
        await connect(engine)
        assert (await sync(engine)).state == "succeeded"
    async with open_store(store, secret_key=NEW) as engine:
        assert (await sync(engine)).state == "succeeded"
    async with open_store(store, secret_key="", secret_key_file=str(tmp_path / "none")) as engine:
        ended = await sync(engine)
        assert (ended.state, ended.error) == ("failed", "secret_key_file: cannot be read: FileNotFoundError")
    with pytest.raises(InvalidInput, match="secret_key_file: excludes secret_key"):
        replace(SETTINGS, secret_key_file=str(keys))


async def test_a_lost_key_costs_the_credentials_alone(server: NoteServer, store: Path) -> None:
    async with open_store(store) as engine:
        await connect(engine)
        await sync(engine)
    async with open_store(store, secret_key=FOREIGN) as engine:
        ended = await sync(engine)
        assert (ended.state, ended.code) == ("failed", "conflict")
        assert "give the credentials again" in (ended.error or "")
        connection = await find_connection(engine)
        assert (connection.state, connection.access, connection.has_credentials) == ("error", "granted", True)
        assert len((await engine.documents.list(collection="team")).documents) == 1
        await engine.connections.set_credentials("notes", {"password": PASSWORD}, collection="team")
        server.notes["new"] = Note("Main", "A new note.")
        assert (await sync(engine)).state == "succeeded"
        assert len((await engine.documents.list(collection="team")).documents) == 2


async def test_a_sync_after_a_rotation_needs_the_old_key_no_more(server: NoteServer, store: Path) -> None:
    async with open_store(store) as engine:
        await connect(engine)
    async with open_store(store, secret_key=f"{NEW}, {OLD}") as engine:
        assert (await sync(engine)).state == "succeeded"
    async with open_store(store, secret_key=NEW) as engine:
        assert (await sync(engine)).state == "succeeded"


async def test_an_error_that_repeats_a_credential_is_masked(
    server: NoteServer, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.notes["torn"] = Note("Main", "A torn page.")
    server.broken.add("torn")
    async with open_store(store) as engine:
        await connect(engine)
        ended = await sync(engine)
        assert "500 for password=[credential]" in json.dumps(ended.result)
        server.password = "another"
        refused = await sync(engine)
        assert refused.error is not None and refused.error.startswith(
            "notes://office: '[credential]' is wrong; give the connection access"
        )
        assert (refused.state, refused.code) == ("failed", "access_lost")
        connection = await find_connection(engine)
        assert (connection.error, connection.access) == (refused.error, "lost")
        assert PASSWORD not in repr((ended, refused, connection))
    assert PASSWORD not in caplog.text
    assert PASSWORD.encode() not in read_all_files(store)


@pytest.mark.parametrize(
    ("options", "credentials", "reason"),
    [
        (OPTIONS, {}, "credentials: password is missing"),
        (OPTIONS, None, "credentials: password is missing"),
        (OPTIONS, {"password": PASSWORD, PASSWORD: "pin"}, "a name is not a credential of notes"),
        (OPTIONS, {"password": ""}, "password: must have from 1 to 100 characters"),
        (OPTIONS, {"password": PASSWORD * 10}, "password: must have from 1 to 100 characters"),
        (OPTIONS, {"password": 77_777_777}, "credentials"),
        (OPTIONS, {"password": [PASSWORD]}, "credentials"),
        ({**OPTIONS, "password": PASSWORD}, {}, "'password' looks like a secret; give it in `credentials`"),
    ],
)
async def test_wrong_credentials_are_refused_and_not_repeated(
    server: NoteServer, store: Path, options: dict[str, str], credentials: dict[str, str], reason: str
) -> None:
    async with open_store(store) as engine:
        await engine.collections.create("team")
        with pytest.raises(InvalidInput, match=reason) as refused:
            await engine.connections.create(
                "notes", "notes", options, credentials=credentials, collection="team"
            )
        assert "hunter2" not in str(refused.value)
        assert "77" not in str(refused.value)
        assert list(await engine.connections.list(collection="team")) == []


async def test_managers_alone_give_credentials(server: NoteServer, store: Path) -> None:
    async with open_store(store) as owner:
        await connect(owner)
        user = await owner.people.create_user("ann")
        ann = owner.as_person(Person("ann", id=user.id))
        replaced = {"password": "other"}
        with pytest.raises(NotFound):
            await ann.connections.set_credentials("notes", replaced, collection="team")
        await owner.access.grant("team", Principal("user", user.id), "editor")
        with pytest.raises(PermissionDenied):
            await ann.connections.set_credentials("notes", replaced, collection="team")
        await owner.access.grant("team", Principal("user", user.id), "manager")
        assert (await ann.connections.set_credentials("notes", replaced, collection="team")).has_credentials
        assert "'[credential]' is wrong" in str((await sync(owner)).error)
        crawler = owner.as_person(Person("ann", id=user.id, origin="web"))
        with pytest.raises(PermissionDenied):
            await crawler.connections.set_credentials("notes", replaced, collection="team")
        with pytest.raises(InvalidInput, match="credentials: password is missing"):
            await ann.connections.set_credentials("notes", {}, collection="team")
        with pytest.raises(NotFound):
            await ann.connections.set_credentials("none", replaced, collection="team")
