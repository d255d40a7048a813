"""What connectors hold to that mirror permissions: nobody reads what the server does not let them read."""

import random

import pytest

from conspectus.connectors import EVERYONE
from conspectus.testing.connectors.guarded_fixtures import MAX_CHANGES, GuardedFixtures
from conspectus.testing.connectors.permission_histories import PermissionHistory
from conspectus.testing.connectors.servers import Interruptible
from conspectus.testing.connectors.summary import note_tally, step_count
from conspectus.testing.connectors.syncs import MAX_REQUESTS, ConnectorProperties


class MirroringProperties(GuardedFixtures, ConnectorProperties):
    """What every connector that mirrors permissions holds to. The server is a `GuardedServer`."""

    async def test_histories_of_permissions(
        self, history: PermissionHistory, request: pytest.FixtureRequest
    ) -> None:
        """Grants, revocations, moves, deletions, groups: after each sync, 0 leaks and 0 over-hidings."""
        for seed in self.seeds:
            history.dice = random.Random(seed)
            for _ in range(step_count(request.config, self.steps)):
                await history.step(history.dice.randrange(1, MAX_CHANGES + 1))
        note_tally(request.node, self.server, history.tally)
        assert history.tally.leaks == []
        assert history.tally.over_hidings == []
        assert history.tally.after_change > 0

    async def test_other_viewers_of_the_same_text(self, history: PermissionHistory) -> None:
        """A page is shown and hidden, though its text stays."""
        person, other = history.remote.people[:2]
        await self._put(history, {person})
        for viewers in ({person, other}, {other}, set(), {EVERYONE}, {person}):
            await history.remote.share("Main", "page0", frozenset(viewers))
            await self._check(history)

    async def test_members_of_a_group_change(self, history: PermissionHistory) -> None:
        """They read what the group may read, from the next sync on, and no longer."""
        if not history.remote.groups:
            pytest.skip("it has no groups")
        group, (person, other) = history.remote.groups[0], history.remote.people[:2]
        await history.remote.set_members(group, frozenset({person}))
        await self._put(history, {group})
        for members in ({other}, {person, other}, set(), {person}):
            await history.remote.set_members(group, frozenset(members))
            await self._check(history)

    async def test_a_page_moves_between_viewers(self, history: PermissionHistory) -> None:
        """It is read where it is."""
        person, other = history.remote.people[:2]
        await self._put(history, {person})
        history.pages["page1"], history.marks["page1"] = "Other", "mark1"
        await history.remote.put("Other", "page1", "The lantern mark1 is new.")
        await history.remote.share("Other", "page1", frozenset({other}))
        await self._check(history)
        await history.remote.move("Main", "page0", to_space="Other", to_name="page0")
        history.pages["page0"] = "Other"
        await self._check(history)

    async def test_a_page_is_made_again_for_others(self, history: PermissionHistory) -> None:
        """Its former viewers read neither text."""
        person, other = history.remote.people[:2]
        await self._put(history, {person})
        await history.remote.delete("Main", "page0")
        await history.remote.put("Main", "page0", "The lantern mark2 is another.")
        await history.remote.share("Main", "page0", frozenset({other}))
        history.marks["page0"] = "mark2"
        await self._check(history)

    async def test_revoked_while_the_server_stops(self, history: PermissionHistory) -> None:
        """Wherever the sync stops, a former viewer does not read the text that was written for another."""
        if not isinstance(history.remote, Interruptible):
            pytest.skip("it cannot be stopped at a request")
        people = history.remote.people[:2]
        await self._put(history, {people[1]})
        for answered in range(MAX_REQUESTS):
            mark = history.marks["page0"] = f"mark{answered}0"
            await history.remote.share("Main", "page0", frozenset({people[answered % 2]}))
            await history.remote.put("Main", "page0", f"The lantern {mark} is another.")
            history.remote.stop_after(answered)
            job = await history.synced.sync()
            history.remote.stop_after(None)
            former = people[(answered + 1) % 2]
            assert mark not in set().union(*(await history.read(former)).values())
            await self._check(history)
            if job.state == "succeeded":
                return
        raise AssertionError(f"a sync of one page asks more than {MAX_REQUESTS} times")
