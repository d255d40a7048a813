"""Histories of permissions at a remote: after each sync, everybody reads what the remote lets them read."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores import Servers
from tests.support.milvus_server import MilvusProcess
from tests.support.note_office import PASSWORD, NoteOffice
from tests.support.note_server import NoteServer, install_note_connector
from tests.support.postgres_server import PostgresProcess

from conspectus.testing.connectors import MirroringProperties, VerifyingProperties
from conspectus.testing.connectors.permission_histories import PermissionHistory
from conspectus.testing.connectors.summary import note_tally, step_count
from conspectus.testing.connectors.synced_collections import KIT_SETTINGS, connect_collection
from conspectus.testing.embedders import HashedEmbedder


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoteOffice]:
    install_note_connector(tmp_path / "packages", monkeypatch)
    with NoteServer("office", PASSWORD).run() as notes:
        office = NoteOffice(notes)
        notes.people = set(office.people)
        yield office


class TestNotes(MirroringProperties):
    server = "office"


@pytest.fixture
def verified_office(office: NoteOffice) -> NoteOffice:
    office.kind, office.options = "verified", {**office.options, "verify": True}
    return office


class TestVerifiedNotes(VerifyingProperties):
    server = "verified_office"


@pytest.fixture(scope="session")
def servers(postgres: PostgresProcess, milvus: MilvusProcess) -> Servers:
    return Servers(postgres, milvus)


@pytest.mark.parametrize("store", ["postgresql+pgvector", "sqlite+milvus"])
async def test_histories_on_servers(
    servers: Servers, tmp_path: Path, office: NoteOffice, store: str, request: pytest.FixtureRequest
) -> None:
    row_security = "on" if store.startswith("postgresql") else "off"
    settings = replace(KIT_SETTINGS, row_security=row_security, milvus_timeout_seconds=30)
    async with servers.opened(store, tmp_path, HashedEmbedder(), settings=settings) as engine:
        synced = await connect_collection(engine, office)
        history = PermissionHistory(synced, office, random.Random(3))
        await history.admit_people()
        for _ in range(step_count(request.config, 4)):
            await history.step(2)
    note_tally(request.node, store, history.tally)
    assert (history.tally.leaks, history.tally.over_hidings) == ([], [])
    assert history.tally.after_change > 0
