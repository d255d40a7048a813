"""Fixtures of the classes about permissions: people who read a collection that mirrors a server."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar, cast

import pytest

from conspectus.engine.engine import Engine
from conspectus.testing.connectors.permission_histories import PermissionHistory
from conspectus.testing.connectors.servers import GuardedServer
from conspectus.testing.connectors.synced_collections import connect_collection, open_engine

MAX_CHANGES = 3
"""Changes between two syncs of a history, at most."""


class GuardedFixtures:
    """An engine, and the history of a server without a page.

    Args:
        server: name of the fixture that has the server, a `GuardedServer`.
        steps: syncs of each history; `--connector-steps` of the plug-in replaces it.
        seeds: a history for each.
    """

    server: ClassVar[str]
    steps: ClassVar[int] = 8
    seeds: ClassVar[tuple[int, ...]] = (1, 2)

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        """An engine on an empty store; override it for another store."""
        async with open_engine(tmp_path / "kit") as engine:
            yield engine

    @pytest.fixture
    def remote(self, request: pytest.FixtureRequest) -> GuardedServer:
        """The server, without pages. Its fixture may be asynchronous, so no asynchronous one requests it."""
        return cast(GuardedServer, request.getfixturevalue(self.server))

    @pytest.fixture
    async def history(self, engine: Engine, remote: GuardedServer) -> PermissionHistory:
        """People who read a collection that mirrors the server, which has no page yet."""
        history = PermissionHistory(await connect_collection(engine, remote), remote, random.Random(0))
        await history.admit_people()
        return history

    async def _put(self, history: PermissionHistory, viewers: set[str]) -> None:
        """Make a page for viewers, and check who reads it."""
        history.pages["page0"], history.marks["page0"] = "Main", "mark0"
        await history.remote.put("Main", "page0", "The lantern mark0 is here.")
        await history.remote.share("Main", "page0", frozenset(viewers))
        await self._check(history)

    async def _check(self, history: PermissionHistory) -> None:
        """Sync, and check that everybody reads what the server lets them read."""
        await history.synced.sync_fully()
        await history.compare()
        assert (history.tally.leaks, history.tally.over_hidings) == ([], [])
