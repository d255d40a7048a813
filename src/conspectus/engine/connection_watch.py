"""Connections that are watched: brought in step whenever what they are connected with changes."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from conspectus.engine.job_submission import JobSubmission
from conspectus.errors import InvalidInput
from conspectus.ingest.watchers import Follow, Followers
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job
from conspectus.ports.web import Watchable


class Following(JobSubmission):
    """Connections without anybody who asks for `sync`."""

    async def follow(
        self, name: str, *, collection: str = "default", told: Callable[[Job], None] | None = None
    ) -> None:
        """Bring a collection in step now and after every change, until this is cancelled.

        `told` is handed each job that has ended. Raises NotFound, InvalidInput for a store that cannot be
        watched, and FetchFailed if it is gone.
        """
        place = await self._sight.place(collection)
        wiki = await self._job_sight.connection(place, name)
        connector = self._parts.work.connector_for(wiki, self._core.fetcher())
        try:
            if not isinstance(connector, Watchable):
                raise InvalidInput(
                    "connection", f"{wiki.connector} cannot be watched; sync it from time to time"
                )
            changes = connector.watch()
            while True:
                changed = asyncio.ensure_future(anext(changes))
                try:
                    await self._in_step(wiki, told)
                    await changed
                finally:
                    changed.cancel()
        finally:
            await connector.close()

    async def start_following(self) -> None:
        """Follow, from now on, every connection with the option `watch`, as its owner may."""
        self._core.follow(Followers(self._watched))

    async def _watched(self) -> Mapping[str, Follow]:
        found: dict[str, Follow] = {}
        for place in await self._sight.places():
            for wiki in await self._parts.work.ledger.connections(place.collection.id):
                if wiki.options.get("watch"):
                    found[wiki.id] = partial(self._follow_as_owner, wiki)
        return found

    async def _follow_as_owner(self, wiki: Connection) -> None:
        person = await self._person_of(wiki.owner)
        await Following(self._core, person).follow(wiki.name, collection=wiki.collection)

    async def _in_step(self, wiki: Connection, told: Callable[[Job], None] | None) -> None:
        """A run that begins after this call; one that runs already may have looked before the change."""
        while True:
            job = await self.sync(wiki.name, collection=wiki.collection)
            ended = await self.wait_job(job.id)
            if told is not None:
                told(ended)
            if job.started is None:
                return
