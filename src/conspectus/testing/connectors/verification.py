"""What connectors hold to that verify: what a person may not open at the remote now is shown nowhere."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus.connectors import EVERYONE
from conspectus.engine.engine import Engine
from conspectus.testing.connectors.guarded_fixtures import MAX_CHANGES, GuardedFixtures
from conspectus.testing.connectors.permission_histories import PermissionHistory
from conspectus.testing.connectors.servers import Interruptible
from conspectus.testing.connectors.summary import note_tally, step_count
from conspectus.testing.connectors.synced_collections import KIT_SETTINGS


class VerifyingProperties(GuardedFixtures):
    """What every connector holds to that verifies, besides mirroring. The server turns `verify` on."""

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        """An engine that asks the remote each time."""
        settings = replace(KIT_SETTINGS, verify_cache_seconds=0, verify_timeout_seconds=30)
        async with conspectus.open(tmp_path / "kit" / "store", settings=settings) as engine:
            yield engine

    async def test_histories_without_a_sync(
        self, history: PermissionHistory, request: pytest.FixtureRequest
    ) -> None:
        """Whatever changes, also before each sync: 0 leaks and 0 over-hidings."""
        for seed in self.seeds:
            history.dice = random.Random(seed)
            for _ in range(step_count(request.config, self.steps)):
                await history.step(history.dice.randrange(1, MAX_CHANGES + 1), verifies=True)
        note_tally(request.node, f"{self.server}, verified", history.tally)
        assert history.tally.leaks == []
        assert history.tally.over_hidings == []
        assert history.tally.revocations > 0

    async def test_a_revocation_needs_no_sync(self, history: PermissionHistory) -> None:
        """It holds for the next request, and so does what is given back."""
        person, other = history.remote.people[:2]
        await self._put(history, {person, other})
        for viewers in ({other}, {person, other}, set(), {EVERYONE}, {person}):
            await history.remote.share("Main", "page0", frozenset(viewers))
            await history.compare_before_sync()
            assert (history.tally.leaks, history.tally.over_hidings) == ([], [])

    async def test_a_deleted_page_needs_no_sync(self, history: PermissionHistory) -> None:
        """Nobody can open it, so nobody reads it."""
        await self._put(history, {EVERYONE})
        await history.remote.delete("Main", "page0")
        for person in history.views:
            assert set().union(*(await history.read(person)).values()) == set()

    async def test_a_server_that_stops_shows_nothing(self, history: PermissionHistory) -> None:
        """Nobody reads what cannot be checked, and all is back with the server."""
        if not isinstance(history.remote, Interruptible):
            pytest.skip("it cannot be stopped at a request")
        await self._put(history, {EVERYONE})
        history.remote.stop_after(0)
        for person in history.views:
            assert set().union(*(await history.read(person)).values()) == set()
        history.remote.stop_after(None)
        await self._check(history)
