"""Retention rules of memory scopes, and their application."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Annotated, Unpack
from urllib.parse import unquote

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.memory_deletion import MAX_DELETED_MEMORIES, delete_selected
from conspectus.engine.memory_reads import MemoryReader
from conspectus.engine.service import Service
from conspectus.errors import ConspectusError
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.memory.retention import (
    RetentionWorker,
    check_retention,
    combine_rules,
    counts_of,
    days_before,
    oldest,
    read_from,
    rule_address,
)
from conspectus.memory.scopes import (
    MEMORIES,
    check_scope,
    choose_scope,
    choose_scope_or_all,
    end_of_prefix,
    includes_scope,
    scope_of,
)
from conspectus.model.access import Person
from conspectus.model.filter import Eq, Not
from conspectus.model.ids import CollectionId, DocumentId, UserId
from conspectus.model.jobs import Job
from conspectus.model.memory import (
    MEMORY,
    NO_SCOPE,
    PINNED,
    MemoryReceipt,
    Retention,
    RetentionRule,
    Scope,
    ScopeNames,
)
from conspectus.model.parameters import DryRun, MemoryCollection
from conspectus.model.records import Json
from conspectus.ports.memories import StoredRetention
from conspectus.text.hashing import stable_id

logger = logging.getLogger(__name__)

NO_LIMIT = 2**31
"""More memories than any source has."""
RULES = "rules"
"""Argument of a job: the ids of the rules to apply; without it, all rules of the collection."""
RETENTION_LOCK = "keeping"


class RetentionRules(Service, checked=False):
    """The rules of collections, and the memories that they delete."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)

    async def perform(self, job: Job, tell: Tell) -> Outcome:
        """Run a retention job."""
        access = await self._authorized.collection(job.collection)
        rule_ids = job.arguments.get(RULES)
        rules = [
            rule
            for rule in await self.list_rules(access)
            if not isinstance(rule_ids, list) or rule.id in rule_ids
        ]
        due = await self.find_due_memories(access, rules, None)
        deleted_earlier = counts_of(job.result)["memories"]
        total = deleted_earlier + len(due)
        tell(deleted_earlier, total)
        for start in range(0, len(due), MAX_DELETED_MEMORIES):
            batch, now = due[start : start + MAX_DELETED_MEMORIES], self._parts.clock()
            await self._parts.memories.forget(batch, pinned=False, now=now, job=job.id)
            tell(deleted_earlier + start + len(batch), total)
        await self.note_run(rules)
        # Each deletion has added its counts to the result of the job.
        current_job = await self._parts.work.job_store.job(job.id)
        return Outcome(counts_of(None if current_job is None else current_job.result))

    async def find_due_memories(
        self, access: CollectionAccess, rules: Sequence[StoredRetention], scope: Scope | None
    ) -> Sequence[DocumentId]:
        """Return the memories that these rules delete, if the user may. Raises PermissionDenied."""
        scoped_rules = [(read_from(rule.begins), rule.retention) for rule in rules]
        begins = f"{MEMORIES}/"
        memory_sources = await self._reader.stored.memory_sources(
            access,
            begins=begins,
            below=end_of_prefix(begins),
            holds=lambda source: scope is None or includes_scope(scope, scope_of(source.name)),
        )
        now = self._parts.clock()
        withheld = self._reader.stored.read_quarantined(memory_sources, Not(Eq((PINNED,), True)))
        all_quarantined = [
            document async for page in withheld for document in page if document.thread is not None
        ]
        due: list[DocumentId] = []
        for source in memory_sources.sources:
            rule = combine_rules(scoped_rules, scope_of(source.name))
            if rule is None:
                continue
            before = None if rule.days is None else days_before(now, rule.days)
            visible_ids = await memory_sources.oldest(
                source.id, before=before, beyond=rule.max_count, pinned=False, limit=NO_LIMIT
            )
            quarantined = [document for document in all_quarantined if document.source == source.id]
            quarantined_ids = oldest(quarantined, before=before, beyond=rule.max_count)
            if visible_ids or quarantined_ids:
                access.require("editor", "apply retention rules", source=source.id)
            due += [*visible_ids, *quarantined_ids]
        return due

    async def list_rules(self, access: CollectionAccess) -> Sequence[StoredRetention]:
        """Return the rules of a collection that the user may read."""
        rules = await self._parts.memories.retentions(access.collection.id)
        return [rule for rule in rules if access.sees_all or rule.owner == self._person.id]

    async def note_run(self, rules: Sequence[StoredRetention]) -> None:
        """Record that these rules were applied now."""
        now = self._parts.clock()
        for rule in rules:
            await self._parts.memories.ran(rule.id, now)


class RetentionService(Service):
    """Rules that delete old memories."""

    def __init__(
        self, context: EngineContext, queue: JobQueue, as_person: Callable[[Person], "RetentionService"]
    ) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._rules = RetentionRules(context)
        self._queue = queue
        self._as_person = as_person

    async def set(
        self,
        retention: Annotated[Retention, "How many memories are kept, and for how long."],
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> None:
        """Set the retention rule of a scope, which replaces its rule.

        Nothing is deleted now: `apply` does, or the background work. If several rules hold for a
        conversation, the strictest applies. Raises InvalidInput or PermissionDenied.
        """
        scope = choose_scope(scope, names)
        require_scope(self._person, "write", "set a retention rule")
        rule = check_retention(retention)
        check_scope(scope)
        if await self._authorized.find(collection) is None:
            new_collection = await self._writer.collection(collection)
            await self._context.set_entity_extraction(new_collection.id, enabled=True)
        collection_id = await self._require_editable_scope(scope, collection)
        begins = rule_address(scope)
        self._context.screen_value("retentions.begins", unquote(begins), collection_id, field="scope")
        rule_id = stable_id("retention", collection_id, begins)
        await self._parts.memories.put_retention(
            StoredRetention(rule_id, collection_id, begins, rule, self._person.id)
        )
        limits = f"days {rule.days}, at most {rule.max_count}"
        await self._context.note_change("set_retention", rule_id, collection_id, limits)

    async def delete(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> None:
        """Delete the retention rule of a scope, if it has one. Raises PermissionDenied."""
        scope = choose_scope(scope, names)
        require_scope(self._person, "write", "set a retention rule")
        collection_id = await self._require_editable_scope(check_scope(scope), collection)
        rule_id = stable_id("retention", collection_id, rule_address(scope))
        await self._parts.memories.drop_retention(rule_id)
        await self._context.note_change("delete_retention", rule_id, collection_id)

    async def _require_editable_scope(self, scope: Scope, collection: str) -> CollectionId:
        """Return the collection, if the user may change this scope's rule. Raises PermissionDenied."""
        memory_sources = await self._reader.memory_sources(scope, collection)
        for source in memory_sources.ids or (None,):
            memory_sources.access.require("editor", "set a retention rule", source=source)
        return memory_sources.access.collection.id

    async def list(self, *, collection: MemoryCollection = MEMORY) -> Sequence[RetentionRule]:
        """List the retention rules of a collection: all if you may read all of it, else your own."""
        access = await self._authorized.collection(collection)
        name = access.collection.name
        rules = await self._rules.list_rules(access)
        return [RetentionRule(read_from(rule.begins), rule.retention, name, rule.last_run) for rule in rules]

    async def apply(
        self,
        *,
        collection: MemoryCollection = MEMORY,
        scope: Annotated[Scope | None, "Scope of the memories; none: all."] = None,
        dry_run: DryRun = False,
        **names: Unpack[ScopeNames],
    ) -> MemoryReceipt:
        """Apply the retention rules of a scope, or all; with `dry_run`, only say what they would delete."""
        scope = choose_scope_or_all(scope, names)
        require_scope(self._person, "write", "apply retention rules")
        access = await self._authorized.collection(collection)
        rules = await self._rules.list_rules(access)
        due = await self._rules.find_due_memories(
            access, rules, None if scope is None else check_scope(scope)
        )
        receipt = await delete_selected(self._context, due, pinned=False, dry_run=dry_run)
        if scope is None and not dry_run:
            await self._rules.note_run(rules)
        return receipt

    async def start_job(self, *, collection: MemoryCollection = MEMORY) -> Job:
        """Apply the retention rules of a collection in a background job; only one runs at a time."""
        require_scope(self._person, "write", "apply retention rules")
        access = await self._authorized.collection(collection)
        await self._rules.find_due_memories(access, await self._rules.list_rules(access), None)
        return await self._submit_job(access, {})

    async def start(self) -> None:
        """Apply every retention rule in the background when it is due, with the rights of its creator.

        One of the processes that have the store open does so, every `retention_interval_minutes` of the
        settings (0: never), with jobs.
        """
        minutes = self._parts.settings.retention_interval_minutes
        if minutes:
            self._core.ensure_running(
                RetentionWorker,
                lambda: RetentionWorker(
                    self._start_due_jobs,
                    turn=partial(self._parts.turns, RETENTION_LOCK),
                    pause=60.0 * minutes,
                ),
            )

    async def _start_due_jobs(self) -> None:
        """Start a job for each collection whose due rules delete something."""
        pause, now = timedelta(minutes=self._parts.settings.retention_interval_minutes), self._parts.clock()
        all_rules = sorted(await self._parts.memories.retentions(), key=_rule_group)
        for (collection, owner), rules in groupby(all_rules, key=_rule_group):
            overdue = [
                rule for rule in rules if rule.last_run is None or not now - pause < rule.last_run <= now
            ]
            if not overdue:
                continue
            try:
                person = await self._context.person_of(UserId(owner))
                await self._as_person(person)._start_job(CollectionId(collection), overdue)
            except ConspectusError as fault:
                logger.warning(
                    "retention_failed owner=%(owner)s code=%(code)s", {"owner": owner, "code": fault.code}
                )

    async def _start_job(self, collection: CollectionId, rules: Sequence[StoredRetention]) -> None:
        """Start a job for these rules, unless they delete nothing."""
        access = await self._authorized.collection(collection)
        if not await self._rules.find_due_memories(access, rules, None):
            await self._rules.note_run(rules)
            return
        rule_ids: list[Json] = [rule.id for rule in rules]
        await self._submit_job(access, {RULES: rule_ids})

    async def _submit_job(self, access: CollectionAccess, arguments: dict[str, Json]) -> Job:
        title = access.collection.name
        return await self._queue.submit_once("retention", access, title=title, arguments=arguments)


def _rule_group(rule: StoredRetention) -> tuple[str, str]:
    return rule.collection, rule.owner
