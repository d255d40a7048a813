"""Retentions: how long, and how many, memories of a scope are kept, and that they are carried out."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby

from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.memory_transfer import Carrying
from conspectus.errors import ConspectusError
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.memory.retention import (
    added,
    checked_retention,
    counts_of,
    days_before,
    holding,
    read_from,
    written_for,
)
from conspectus.memory.retention_worker import RetentionWorker
from conspectus.memory.scopes import MEMORIES, beyond, checked, holds, scope_of
from conspectus.model.ids import CollectionId, DocumentId, UserId
from conspectus.model.jobs import Job
from conspectus.model.memory import MEMORY, MemoryReceipt, Retention, RetentionRule, Scope
from conspectus.model.records import Json
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.ports.memories import KeptRetention
from conspectus.text.hashing import stable_id

logger = logging.getLogger(__name__)

BATCH = 500
"""So many memories go in one transaction."""
ALL = 2**31
RULES = "rules"


class Keeping(Carrying):
    """Memories that are not to stay for ever."""

    async def retain(self, retention: Retention | None, *, scope: Scope, collection: str = MEMORY) -> None:
        """Keep a rule for each conversation of a scope, in the place of the one it has; None: no more.

        Nothing is deleted now: `apply_retention` says what would be, and does it, and so does what
        `start_keeping` starts. Where several rules hold for a conversation, the strictest does. Raises
        InvalidInput or NotAllowed.
        """
        require_scope(self._person, "write", "keep a retention")
        rule = None if retention is None else checked_retention(retention)
        checked(scope)
        if rule is not None and await self._sight.find(collection) is None:
            made = await self.collection(collection)
            await self.keep_names(collection=made.id)
        homes = await self._homes(scope, collection)
        for source in homes.ids or (None,):
            homes.place.require("editor", "keep a retention", source=source)
        home, begins = homes.place.collection.id, written_for(scope)
        name = stable_id("retention", home, begins)
        if rule is None:
            await self._parts.memories.drop_retention(name)
            return
        await self._parts.memories.put_retention(KeptRetention(name, home, begins, rule, self._person.id))

    async def retentions(self, *, collection: str = MEMORY) -> list[RetentionRule]:
        """The rules of a collection: all for those who see all of it, for others their own."""
        place = await self._sight.place(collection)
        name = place.collection.name
        rules = await self._rules(place)
        return [RetentionRule(read_from(each.begins), each.retention, name, each.ran) for each in rules]

    async def apply_retention(
        self, *, collection: str = MEMORY, scope: Scope | None = None, preview: bool = False
    ) -> MemoryReceipt:
        """Delete what the rules do not let stay, in a scope or wherever they hold; or say what would go."""
        require_scope(self._person, "write", "carry out a retention")
        place = await self._sight.place(collection)
        rules = await self._rules(place)
        due = await self._due(place, rules, None if scope is None else checked(scope))
        receipt = await self._let_go(due, pinned=False, preview=preview)
        if scope is None and not preview:
            await self._note_run(rules)
        return receipt

    async def start_retention(self, *, collection: str = MEMORY) -> Job:
        """Have the rules of a collection carried out by a job, whose result says what went; one at a time."""
        require_scope(self._person, "write", "carry out a retention")
        place = await self._sight.place(collection)
        await self._due(place, await self._rules(place), None)
        return await self._retention_job(place, {})

    async def start_keeping(self) -> None:
        """Carry out every rule, as whoever keeps it may, from now on whenever it is due.

        Of all processes that have the store open, one does so, every `retention_interval_minutes` of the
        settings (0: not at all), by jobs.
        """
        minutes = self._parts.settings.retention_interval_minutes
        if minutes:
            self._core.keep(
                lambda: RetentionWorker(self._keep_due, turn=self._parts.keeping, pause=60.0 * minutes)
            )

    async def _perform(self, job: Job, tell: Tell) -> Outcome:
        if job.kind != "retention":
            return await super()._perform(job, tell)
        place = await self._sight.place_of(job.collection)
        chosen = job.arguments.get(RULES)
        rules = [
            each for each in await self._rules(place) if not isinstance(chosen, list) or each.id in chosen
        ]
        due = await self._due(place, rules, None)
        done = counts_of(job.result)["memories"]
        total = done + len(due)
        tell(done, total)
        for start in range(0, len(due), BATCH):
            batch, now = due[start : start + BATCH], self._parts.clock()
            await self._parts.memories.forget(batch, pinned=False, now=now, job=job.id)
            tell(done + start + len(batch), total)
        await self._note_run(rules)
        counted = await self._parts.work.ledger.job(job.id)
        return Outcome(counts_of(None if counted is None else counted.result))

    async def _let_go(self, memories: Sequence[DocumentId], *, pinned: bool, preview: bool) -> MemoryReceipt:
        """Delete memories in batches, or weigh all of them together."""
        kept, now = self._parts.memories, self._parts.clock()
        if preview:
            return await kept.forget(memories, pinned=pinned, now=now, preview=True)
        total = MemoryReceipt(0)
        for start in range(0, len(memories), BATCH):
            batch = memories[start : start + BATCH]
            total = added(total, await kept.forget(batch, pinned=pinned, now=now))
        return total

    async def _due(
        self, place: SourceRef, rules: Sequence[KeptRetention], scope: Scope | None
    ) -> list[DocumentId]:
        """What these rules do not let stay, where the person may delete it. Raises NotAllowed."""
        scopes = [(read_from(each.begins), each.retention) for each in rules]
        begins = f"{MEMORIES}/"
        homes = await self._memory_sight.homes(
            place,
            begins=begins,
            below=beyond(begins),
            holds=lambda source: scope is None or holds(scope, scope_of(source.name)),
        )
        now = self._parts.clock()
        due: list[DocumentId] = []
        for home in homes.sources:
            rule = holding(scopes, scope_of(home.name))
            if rule is None:
                continue
            before = None if rule.days is None else days_before(now, rule.days)
            found = await homes.oldest(home.id, before=before, beyond=rule.most, pinned=False, limit=ALL)
            if found:
                place.require("editor", "carry out a retention", source=home.id)
            due += found
        return due

    async def _rules(self, place: SourceRef) -> list[KeptRetention]:
        """The rules of a collection that the person may know."""
        kept = await self._parts.memories.retentions(place.collection.id)
        return [each for each in kept if place.whole or each.owner == self._person.id]

    async def _note_run(self, rules: Sequence[KeptRetention]) -> None:
        now = self._parts.clock()
        for each in rules:
            await self._parts.memories.ran(each.id, now)

    async def _keep_due(self) -> None:
        """Start a job for each of those whose rules are due and let something go."""
        pause, now = timedelta(minutes=self._parts.settings.retention_interval_minutes), self._parts.clock()
        kept = sorted(await self._parts.memories.retentions(), key=_keeper)
        for (collection, owner), rules in groupby(kept, key=_keeper):
            late = [each for each in rules if each.ran is None or not now - pause < each.ran <= now]
            if not late:
                continue
            try:
                person = await self._person_of(UserId(owner))
                await self._as(person)._keep_own(CollectionId(collection), late)
            except ConspectusError as fault:
                logger.warning("retentions of %s cannot be carried out: %s", owner, fault.code)

    async def _keep_own(self, collection: CollectionId, rules: Sequence[KeptRetention]) -> None:
        place = await self._sight.place_of(collection)
        if not await self._due(place, rules, None):
            await self._note_run(rules)
            return
        names: list[Json] = [each.id for each in rules]
        await self._retention_job(place, {RULES: names})

    async def _retention_job(self, place: SourceRef, arguments: dict[str, Json]) -> Job:
        """The own job that waits or runs, or a new one."""
        scope = JobScope((JobPlace(place.collection.id),), ("queued", "running"))
        after: str | None = None
        while True:
            page = await self._parts.work.ledger.jobs(scope, after=after)
            for job in page.jobs:
                if job.kind == "retention" and job.owner == self._person.id and job.arguments == arguments:
                    return job
            after = page.next
            if after is None:
                break
        title = place.collection.name
        return await self._submit(self._new_job("retention", place, None, title=title, arguments=arguments))


def _keeper(kept: KeptRetention) -> tuple[str, str]:
    return kept.collection, kept.owner
