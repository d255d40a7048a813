"""What syncs of every connector hold to, with a real engine: nothing is lost, doubled or told."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import conspectus
from conspectus.engine.engine import Engine
from conspectus.testing.connectors.listings import ListingProperties
from conspectus.testing.connectors.servers import ConnectedServer, Interruptible, PageStore, Throttling
from conspectus.testing.connectors.synced_collections import (
    COLLECTION,
    CONNECTION,
    KIT_SETTINGS,
    SyncedCollection,
    connect_collection,
    open_engine,
)

MAX_REQUESTS = 500
"""A sync of the few pages below that asks more often fails its test."""
PAGES = ("alpha words", "beta words", "gamma words")


class ConnectorProperties(ListingProperties):
    """What every connector holds to. The server is a `ConnectedServer`; see `ListingProperties`.

    A server that is `Interruptible` is stopped at each request, one that is `Throttling` asks to slow down.
    """

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        """An engine on an empty store; override it for another store."""
        async with open_engine(tmp_path / "kit") as engine:
            yield engine

    @pytest.fixture
    async def synced(self, engine: Engine, store: PageStore) -> SyncedCollection:
        """A collection that has three pages of two spaces."""
        await _put_pages(store)
        synced = await connect_collection(engine, cast(ConnectedServer, store))
        await synced.sync_fully()
        return synced

    async def test_a_sync_stores_every_page(self, synced: SyncedCollection) -> None:
        """Once each."""
        assert await synced.texts() == list(PAGES)

    async def test_a_sync_without_changes(self, synced: SyncedCollection) -> None:
        """It writes and deletes nothing."""
        counts = (await synced.sync_fully()).result
        assert counts is not None
        assert (counts["added"], counts["replaced"], counts["deleted"]) == (0, 0, 0)

    async def test_changes_moves_and_deletions_are_synced(self, synced: SyncedCollection) -> None:
        """All in one sync."""
        await synced.remote.put("One", "first", "other words")
        await synced.remote.delete("One", "second")
        await synced.remote.move("Two", "third", to_space="One", to_name="third")
        await synced.remote.put("Three", "fourth", "delta words")
        await synced.sync_fully()
        assert await synced.texts() == ["delta words", "gamma words", "other words"]

    async def test_stopped_at_every_request(self, synced: SyncedCollection) -> None:
        """Whenever the server stops in a sync, the next one goes on, and nothing is lost or doubled."""
        server = _require_interruptible(synced.remote)
        for answered in range(MAX_REQUESTS):
            texts = [f"words {number} of {answered}" for number in range(3)]
            for number, text in enumerate(texts):
                await synced.remote.put("One", f"page{number}", text)
            server.stop_after(answered)
            job = await synced.sync()
            server.stop_after(None)
            if job.state != "succeeded" or (job.result or {}).get("failures"):
                await synced.sync_fully()
            assert await synced.texts() == sorted([*PAGES, *texts])
            if job.state == "succeeded" and not (job.result or {}).get("failures"):
                return
        raise AssertionError(f"a sync of six pages asks more than {MAX_REQUESTS} times")

    async def test_a_server_that_does_not_answer(self, synced: SyncedCollection) -> None:
        """It costs no page, and the next sync that reaches it shows what changed."""
        server = _require_interruptible(synced.remote)
        await synced.remote.put("One", "first", "other words")
        server.stop_after(0)
        assert (await synced.sync()).state == "failed"
        assert (await synced.read_connection()).access == "unreachable"
        assert await synced.texts() == list(PAGES)
        server.stop_after(None)
        await synced.sync_fully()
        assert await synced.texts() == ["beta words", "gamma words", "other words"]
        assert (await synced.read_connection()).access == "granted"

    @pytest.mark.parametrize("retry_after", ["0", None])
    async def test_a_server_that_asks_to_slow_down(
        self, synced: SyncedCollection, retry_after: str | None
    ) -> None:
        """The sync waits and succeeds, with `Retry-After` and without."""
        server = _require_throttling(synced.remote)
        await synced.remote.put("One", "first", "other words")
        server.throttle(2, retry_after)
        await synced.sync_fully()
        assert "other words" in await synced.texts()

    async def test_two_syncs_at_once(self, synced: SyncedCollection) -> None:
        """The second is the first, or begins after it."""
        await synced.remote.put("Three", "fourth", "delta words")
        jobs = [await synced.owner.connections.sync(CONNECTION, collection=COLLECTION) for _ in range(2)]
        for job in jobs:
            assert (await synced.owner.jobs.wait(job.id)).state == "succeeded"
        assert await synced.texts() == sorted([*PAGES, "delta words"])

    async def test_a_page_over_the_limit(self, store: PageStore, tmp_path: Path) -> None:
        """It is not stored, and costs no other page."""
        await _put_pages(store)
        await store.put("One", "large", "many words " * 200)
        settings = replace(KIT_SETTINGS, max_document_characters=1_000)
        async with conspectus.open(tmp_path / "small", settings=settings) as engine:
            synced = await connect_collection(engine, cast(ConnectedServer, store))
            job = await synced.sync_fully()
            assert len(cast(list[object], (job.result or {})["failures"])) == 1
            assert await synced.texts() == list(PAGES)

    async def test_wrong_credentials(self, synced: SyncedCollection) -> None:
        """The server refuses them: access is lost, until the right ones are given."""
        if not synced.remote.credentials:
            pytest.skip("it has no credentials")
        wrong = {name: f"{secret}x" for name, secret in synced.remote.credentials.items()}
        connections = synced.owner.connections
        await connections.set_credentials(CONNECTION, wrong, collection=COLLECTION)
        job = await synced.sync()
        assert job.state in {"failed", "cancelled"}
        assert (await synced.read_connection()).access == "lost"
        await connections.set_credentials(CONNECTION, synced.remote.credentials, collection=COLLECTION)
        await synced.sync_fully()
        assert (await synced.read_connection()).access == "granted"
        assert await synced.texts() == list(PAGES)

    async def test_no_secret_is_told(
        self, synced: SyncedCollection, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Neither by logs, jobs, errors and listings, nor by any file of the store."""
        if not synced.remote.credentials:
            pytest.skip("it has no credentials")
        caplog.set_level(logging.DEBUG)
        wrong = {name: f"{secret}x" for name, secret in synced.remote.credentials.items()}
        await synced.owner.connections.set_credentials(CONNECTION, wrong, collection=COLLECTION)
        jobs = [await synced.sync()]
        credentials = synced.remote.credentials
        await synced.owner.connections.set_credentials(CONNECTION, credentials, collection=COLLECTION)
        jobs.append(await synced.sync_fully())
        exported = await synced.owner.documents.export(collection=COLLECTION)
        answers = repr((jobs, await synced.read_connection(), exported, synced.owner.connections))
        stored = b"".join(path.read_bytes() for path in (tmp_path / "kit").rglob("*") if path.is_file())
        for secret in credentials.values():
            assert secret not in answers + caplog.text
            assert secret.encode() not in stored


async def _put_pages(store: PageStore) -> None:
    await store.put("One", "first", PAGES[0])
    await store.put("One", "second", PAGES[1])
    await store.put("Two", "third", PAGES[2])


def _require_interruptible(remote: PageStore) -> Interruptible:
    if not isinstance(remote, Interruptible):
        pytest.skip("it cannot be stopped at a request")
    return remote


def _require_throttling(remote: PageStore) -> Throttling:
    if not isinstance(remote, Throttling):
        pytest.skip("it asks nobody to slow down")
    return remote
