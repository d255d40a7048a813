"""The open store, shared by the engines of all users."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from conspectus.access.browser_sign_ins import BrowserSignIns
from conspectus.access.invitations import Invitations
from conspectus.access.keys import Keys
from conspectus.access.readable_sources import ReadableSources
from conspectus.access.reader import AuthorizedReader
from conspectus.access.sessions import Sessions
from conspectus.access.sign_ins import SignIns
from conspectus.access.token_claims import rules_of
from conspectus.engine.answer_writes import AnswerWrites
from conspectus.engine.components import EngineComponents
from conspectus.engine.feedback_cache import FeedbackCache
from conspectus.engine.long_work import LongWork
from conspectus.engine.missing_vectors import MissingVectors
from conspectus.engine.new_user_names import is_free_name
from conspectus.engine.purges import Purges
from conspectus.engine.remote_checks import ConnectorChecks
from conspectus.engine.version_cache import VersionCache
from conspectus.ingest.connection_followers import Followers
from conspectus.ingest.embedding_backfill import Backfill
from conspectus.ingest.name_reader import NameReader
from conspectus.ingest.open_indexes import OpenIndexes
from conspectus.model.access import LOCAL_OWNER
from conspectus.model.answers import AnswerLimits, NewAnswer
from conspectus.model.ids import UserId
from conspectus.ports.identities import GroupDirectory
from conspectus.ports.streams import Poster
from conspectus.ports.web import Fetcher

if TYPE_CHECKING:
    from conspectus.engine.group_sync_worker import GroupSyncWorker
    from conspectus.ingest.job_worker import JobWorker
    from conspectus.memory.retention import RetentionWorker
    from conspectus.streams.alert_checker import AlertWorker

Worker: TypeAlias = "Followers | AlertWorker | RetentionWorker | GroupSyncWorker"


class EngineCore:
    """One open store, shared by the engines of all users."""

    def __init__(self, parts: EngineComponents) -> None:
        self.parts = parts
        self.records = parts.records
        self.keys = Keys(parts.accounts, parts.clock)
        self.sessions = Sessions(
            parts.accounts,
            parts.clock,
            lifetime=timedelta(hours=parts.settings.session_hours),
            max_idle=timedelta(minutes=parts.settings.session_idle_minutes),
        )
        self.invitations = Invitations(parts.accounts, parts.clock, self.sessions)
        token_rules = rules_of(parts.settings)
        self.sign_ins = (
            None
            if token_rules is None
            else SignIns(
                parts.accounts,
                parts.clock,
                token_rules,
                parts.make_token_verifier,
                is_free_name=partial(is_free_name, parts),
            )
        )
        self.browser_sign_ins = (
            None
            if self.sign_ins is None or not self.sign_ins.rules.client
            else BrowserSignIns(
                self.sign_ins,
                parts.accounts,
                parts.clock,
                self.sessions,
                parts.make_code_flow,
                choose_scopes=AuthorizedReader(
                    LOCAL_OWNER, parts.records, parts.accounts, parts.clock
                ).choose_scopes,
            )
        )
        self.remote_checks = ConnectorChecks(parts.work, parts.accounts, parts.settings, self.fetcher)
        self.readable_sources = ReadableSources(
            parts.records, parts.accounts, parts.clock, self.remote_checks
        )
        self.versions = VersionCache(parts.memories)
        self.feedback = FeedbackCache(parts.feedback)
        self.missing_vectors = MissingVectors(parts.records)
        self.open_indexes = OpenIndexes(parts.records, parts.open_index, parts.texts)
        turn, portions = parts.embedding.turn, parts.embedding.portions
        self.backfill = Backfill(
            parts.records, turn, portions, update_index=self.open_indexes.index_in_background
        )
        self.names = NameReader(parts.names.rows, parts.names.turn, parts.names.make_extractor)
        self.long_work = LongWork()
        self.summary_turns = asyncio.Semaphore(max(1, parts.settings.summary_concurrency))
        self.summary_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.chat_states: dict[tuple[UserId, str], str] = {}
        """The state of the last window of a chat session, by user and session; it contains no text."""
        self._fetcher: Fetcher | None = None
        self._group_directory: GroupDirectory | None = None
        self._workers: dict[type[Worker], Worker] = {}
        self._poster: Poster | None = None
        self.answer_writes = AnswerWrites(self._store_answers)
        self.purges = Purges(parts, self.open_indexes, self.answer_writes)

    @cached_property
    def jobs(self) -> "JobWorker":
        """The job queue, run in this process or in others."""
        from conspectus.ingest.job_worker import JobWorker

        work = self.parts.work
        return JobWorker(
            work.job_store, work.files, turn=work.turn, open_jobs=work.open_jobs, clock=self.parts.clock
        )

    def ensure_running(self, kind: type[Worker], make: Callable[[], Worker]) -> None:
        """Run a background worker until the store is closed, one of each kind.

        Raises the error that ended it.
        """
        if kind not in self._workers:
            self._workers[kind] = make()
        self._workers[kind].start()

    def poster(self) -> Poster:
        """Return the client that sends webhooks, created on first use."""
        if self._poster is None:
            self._poster = self.parts.alerts.make_poster()
        return self._poster

    async def group_directory(self) -> GroupDirectory:
        """Return the directory of the settings, loaded on first use. Raises MissingExtra."""
        if self._group_directory is None:
            self._group_directory = await asyncio.to_thread(self.parts.make_group_directory)
        return self._group_directory

    def fetcher(self) -> Fetcher:
        """Return the client that fetches pages, created on first use."""
        if self._fetcher is None:
            self._fetcher = self.parts.work.make_fetcher()
        return self._fetcher

    async def _store_answers(self, new_answers: Sequence[NewAnswer]) -> int:
        settings = self.parts.settings
        since = self.parts.clock() - timedelta(days=settings.answer_days)
        limits = AnswerLimits(since, settings.max_answers, settings.max_answers_bytes)
        return await self.parts.answers.add(new_answers, limits)

    async def close(self) -> None:
        """Stop background work and close every store. Unfinished work continues when the store is next
        opened.
        """
        await self.long_work.close()
        await self.answer_writes.wait_until_written()
        for worker in self._workers.values():
            await worker.close()
        await self.purges.close()
        if self._poster is not None:
            await self._poster.close()
        if "jobs" in vars(self):
            await self.jobs.close(grace=self.parts.settings.job_grace_seconds)
        if self._fetcher is not None:
            await self._fetcher.close()
        if self.browser_sign_ins is not None:
            await self.browser_sign_ins.close()
        if self.sign_ins is not None:
            await self.sign_ins.close()
        await self.names.close()
        await self.backfill.close()
        await self.open_indexes.wait_until_idle()
        await self.parts.release()
        await self.open_indexes.close()
        await self.records.close()
