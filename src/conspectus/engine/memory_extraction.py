"""Extraction of facts: a background job in which a chat model reads memories; each fact cites its memory."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import require_scope
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.memory_deletion import delete_selected
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.memory_writes import MemoryWriter
from conspectus.engine.service import Service
from conspectus.engine.summary_model import (
    MAX_FAILURES,
    AnswerStore,
    BudgetSpent,
    SummaryModel,
    TokenBudget,
    summary_retries,
)
from conspectus.errors import (
    ChatError,
    ChatNotConfigured,
    ConspectusError,
    NotFound,
    PreconditionFailed,
)
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.memory.documents import GIVEN
from conspectus.memory.facts import PROMPT, FactForm, collect_cited_facts, parse_facts, prompts
from conspectus.memory.retention import RetentionWorker
from conspectus.memory.scopes import MEMORIES, check_scope, end_of_prefix, includes_scope, scope_of
from conspectus.model.filter import Eq
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Job
from conspectus.model.memory import ExtractedFact, Memory, Scope
from conspectus.model.records import Json, Metadata, Source
from conspectus.ports.chat import ChatModel
from conspectus.ports.streams import NewSummary
from conspectus.streams.summarizer import SummaryPrompt, run_all
from conspectus.streams.summary_runner import HOPELESS, NotStored
from conspectus.text.hashing import stable_id

logger = logging.getLogger(__name__)

MEMORIES_PER_PAGE: Final = 200
MAX_FAILURES_LISTED: Final = 100
EXTRACTION_LOCK: Final = "extracting"
COMPLETE, BUDGET_SPENT = "complete", "budget_spent"


@dataclass(slots=True)
class ExtractionCounts:
    """The counts of a run so far, over all attempts of its job.

    `refused` facts quote nothing in their memory; `deleted` ones were replaced by facts of a newer prompt or
    model.
    """

    memories: int = 0
    calls: int = 0
    tokens: int = 0
    facts: int = 0
    refused: int = 0
    deleted: int = 0

    @classmethod
    def of(cls, result: Metadata | None) -> "ExtractionCounts":
        """Return the counts in the result of a job."""
        counts = {name: (result or {}).get(name) for name in cls.__slots__}
        return cls(**{name: number for name, number in counts.items() if isinstance(number, int)})


@dataclass(frozen=True, slots=True)
class ExtractionRun:
    """A run of extraction: its job, model, budget and counts."""

    job: Job
    access: CollectionAccess
    model: ChatModel
    budget: TokenBudget
    counts: ExtractionCounts
    failures: list[Json]
    replay: bool
    recipe: str

    @property
    def result(self) -> dict[str, Json]:
        """The report of the run, without texts."""
        counts = {**asdict(self.counts), "tokens": self.budget.used}
        return {**counts, "model": self.model.name, "prompt": PROMPT, "failures": self.failures}


@dataclass(frozen=True, slots=True)
class MemoryAnswers:
    """A memory to be read, the name of its mark as read, and the answers of the model or the error."""

    memory: Memory
    name: str
    answers: Sequence[str] = ()
    fault: Exception | None = None


class FactExtraction(Service, checked=False):
    """Extracts facts from the memories of one user's scopes. Every step can be repeated."""

    def __init__(self, context: EngineContext, queue: JobQueue) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._memories = MemoryWriter(context)
        self._queue = queue

    async def start(
        self, collection: str, scope: Scope | None, *, max_tokens: int | None = None, replay: bool = False
    ) -> Job:
        """Return the job of a run, which is the queued or running one with the same arguments, if any."""
        require_scope(self._person, "write", "extract facts")
        tokens = self._parts.settings.max_fact_tokens if max_tokens is None else max_tokens
        if self._parts.chat_model is None:
            raise ChatNotConfigured
        access = await self._authorized.collection(collection)
        await self._writable_sources(access, None if scope is None else check_scope(scope))
        arguments: dict[str, Json] = {
            "max_tokens": tokens,
            "replay": replay,
            "scope": None if scope is None else {**asdict(scope)},
        }
        return await self._queue.submit_once(
            "extraction", access, title=access.collection.name, arguments=arguments
        )

    async def perform(self, job: Job, tell: Tell) -> Outcome:
        """Run a job: read the memories that were not read before, until the budget is spent."""
        run = await self._resume_run(job)
        scope_fields: Any = job.arguments.get("scope")
        scope = None if scope_fields is None else Scope(**scope_fields)
        sources = await self._writable_sources(run.access, scope)
        total, read_count = await sources.count(GIVEN), 0
        for source in sources.sources:
            source_memories = MemorySources(run.access, (source,), self._parts.memories)
            async for page in source_memories.pages(GIVEN, size=MEMORIES_PER_PAGE):
                memories = [memory_in(source_memories, document, text) for document, text in page]
                is_complete = await self._read_memories(run, source, source_memories, memories)
                read_count += len(memories)
                tell(read_count, max(total, read_count))
                if not is_complete:
                    return Outcome({"outcome": BUDGET_SPENT, **run.result})
        return Outcome({"outcome": COMPLETE, **run.result})

    async def _resume_run(self, job: Job) -> ExtractionRun:
        """Return the run of a job, with the counts of its earlier attempts."""
        model = self._parts.chat_model
        if model is None:
            raise ChatNotConfigured
        access = await self._authorized.collection(job.collection)
        counts, limit = ExtractionCounts.of(job.result), job.arguments.get("max_tokens")
        count = self._parts.counter(model.tokenizer)
        failures = (job.result or {}).get("failures")
        return ExtractionRun(
            job=job,
            access=access,
            model=model,
            budget=TokenBudget(limit if isinstance(limit, int) else 0, count, counts.tokens),
            counts=counts,
            failures=list(failures) if isinstance(failures, list) else [],
            replay=job.arguments.get("replay") is True,
            recipe=stable_id("recipe", "facts", PROMPT, model.name),
        )

    async def _writable_sources(self, access: CollectionAccess, scope: Scope | None) -> MemorySources:
        """Return the sources of a scope, or all. Raises PermissionDenied if one may not be written to."""
        begins = f"{MEMORIES}/"
        memory_sources = await self._reader.stored.memory_sources(
            access,
            begins=begins,
            below=end_of_prefix(begins),
            holds=lambda source: scope is None or includes_scope(scope, scope_of(source.name)),
        )
        for source_id in memory_sources.ids:
            access.require("editor", "extract facts", source=source_id)
        return memory_sources

    async def _read_memories(
        self, run: ExtractionRun, source: Source, sources: MemorySources, memories: Sequence[Memory]
    ) -> bool:
        """Read the memories that were not read before. Returns False when the budget is spent."""
        summary_model = self._make_model(run, source, memories)
        unread = await self._filter_unread(run, summary_model, memories)
        earlier_calls = run.counts.calls
        size = max(1, self._parts.settings.summary_concurrency)
        for start in range(0, len(unread), size):
            answered = await run_all(
                [self._ask(run, summary_model, reading) for reading in unread[start : start + size]]
            )
            for reading in answered:
                await self._store_facts(run, source, sources, reading)
            run.counts.calls = earlier_calls + summary_model.calls
            # An interrupted run continues with the budget in the result of its job.
            await self._parts.work.job_store.change(
                run.job.id, unless=tuple(FINISHED), attempt=run.job.attempts, result=run.result
            )
            if any(isinstance(reading.fault, BudgetSpent) for reading in answered):
                return False
            if len(summary_model.unanswered) >= MAX_FAILURES:
                raise summary_model.unanswered[-1]
        return True

    def _make_model(self, run: ExtractionRun, source: Source, memories: Sequence[Memory]) -> SummaryModel:
        fingerprints = {memory.document.id: memory.document.fingerprint for memory in memories}
        answer_store = AnswerStore(self._parts.summaries, source.id, run.recipe, fingerprints)
        return SummaryModel(
            run.model,
            answer_store,
            FactForm(),
            summary_retries(self._parts.settings),
            self._core.summary_turns,
            reading=run.replay,
            budget=run.budget,
        )

    async def _filter_unread(
        self, run: ExtractionRun, summary_model: SummaryModel, memories: Sequence[Memory]
    ) -> list[MemoryAnswers]:
        """Return the memories that were not read before with this prompt and model; in a replay, all."""
        readings = []
        for memory in memories:
            # The mark of a memory that was read is equal for equal prompts, model and trust.
            names = [summary_model.name_of(prompt) for prompt in self._prompts(run, memory)]
            mark = stable_id("facts", memory.document.origin, memory.document.trust, *names)
            readings.append(MemoryAnswers(memory, mark))
        if run.replay:
            return readings
        stored = await self._parts.summaries.select_stored([reading.name for reading in readings])
        return [reading for reading in readings if reading.name not in stored]

    def _prompts(self, run: ExtractionRun, memory: Memory) -> list[SummaryPrompt]:
        return list(prompts(memory, window=run.model.window, count=run.budget.count))

    async def _ask(
        self, run: ExtractionRun, summary_model: SummaryModel, reading: MemoryAnswers
    ) -> MemoryAnswers:
        """Store the answers of the model about a memory; return the memory with them or with the error."""
        try:
            answers = [await summary_model.ask(prompt) for prompt in self._prompts(run, reading.memory)]
        except HOPELESS:
            raise
        except (ChatError, BudgetSpent, NotStored, PreconditionFailed) as fault:
            return replace(reading, fault=fault)
        return replace(reading, answers=tuple(answer.text for answer in answers))

    async def _store_facts(
        self, run: ExtractionRun, source: Source, sources: MemorySources, reading: MemoryAnswers
    ) -> None:
        """Store the facts of a memory, then a mark that it was read. An interrupted memory is read again."""
        if isinstance(reading.fault, ChatError) and len(run.failures) < MAX_FAILURES_LISTED:
            failure: dict[str, Json] = {"memory": reading.memory.id, "code": reading.fault.code}
            run.failures.append(failure)
        if reading.fault is not None:
            return
        memory = reading.memory
        extracted = [fact for answer in reading.answers for fact in parse_facts(answer)]
        facts, refused = collect_cited_facts(memory, extracted, run.model.name)
        written = await self._write_facts(run, source, memory, facts)
        state = (memory.document.content_hash, memory.document.trust)
        current = await self._reader.stored.documents(sources, [memory.id])
        unchanged = [document for document in current if (document.content_hash, document.trust) == state]
        current_ids = {fact_id for fact_id, _ in written} if unchanged else set()
        run.counts.deleted += await self._delete_others(sources, memory, current_ids)
        if unchanged:
            fingerprints = ((memory.document.id, unchanged[0].fingerprint),)
            mark = NewSummary(reading.name, run.recipe, "", fingerprints)
            try:
                await self._parts.summaries.add(source.id, mark)
            except PreconditionFailed:
                logger.info("extraction_repeated memory=%(memory)s", {"memory": memory.id})
            run.counts.memories += 1
            run.counts.facts += sum(added for _, added in written)
            run.counts.refused += refused + len(facts) - len(written)

    async def _write_facts(
        self, run: ExtractionRun, source: Source, memory: Memory, facts: Sequence[ExtractedFact]
    ) -> list[tuple[str, bool]]:
        """Store facts that a graph can hold; return their ids, and whether they are new."""
        storable = [fact for fact in facts if await self._memories.can_store(source, run.access, fact)]
        if not storable:
            return []
        try:
            written = await self._memories.write(source, run.access, memory.scope, storable)
        except NotFound:
            return []
        collection = run.access.collection
        self._context.begin_embedding(collection, await self._context.embedder(collection))
        return [(fact.id, fact.outcome == "added") for fact in written]

    async def _delete_others(self, sources: MemorySources, memory: Memory, current_ids: set[str]) -> int:
        """Delete the facts of a memory except the current ones; return their number."""
        rows, _ = await sources.page(Eq("parent", memory.id), after=None, limit=MEMORIES_PER_PAGE)
        outdated = [document.id for document, _ in rows if document.id not in current_ids]
        if not outdated:
            return 0
        return (await delete_selected(self._context, outdated, pinned=True, dry_run=False)).memories

    def watch(self) -> None:
        """Start runs for the collections of the settings, in one process of the store."""
        settings = self._parts.settings
        names = [name.strip() for name in settings.fact_collections.split(",") if name.strip()]
        if not names or not settings.fact_interval_minutes:
            return
        latest_runs: dict[str, tuple[int, JobId]] = {}

        async def start_runs() -> None:
            for name in names:
                await self._start_if_changed(name, latest_runs)

        pause = 60.0 * settings.fact_interval_minutes
        turn = partial(self._parts.turns, EXTRACTION_LOCK)
        self._core.ensure_running(FactWorker, lambda: FactWorker(start_runs, turn=turn, pause=pause))

    async def _start_if_changed(self, name: str, latest_runs: dict[str, tuple[int, JobId]]) -> None:
        """Start a run if the collection has changed since the last one, or that one was not complete.

        `latest_runs` are the sequence of the collection and the job of its last run, by name.
        """
        try:
            access = await self._authorized.find(name)
            if access is None:
                return
            last_sequence, last_job_id = latest_runs.get(name, (-1, JobId("")))
            last_job = await self._parts.work.job_store.job(last_job_id) if last_job_id else None
            is_complete = last_job is not None and (last_job.result or {}).get("outcome") == COMPLETE
            if is_complete and last_sequence == access.collection.sequence:
                return
            job = await self.start(name, None)
            latest_runs[name] = (access.collection.sequence, job.id)
        except ConspectusError as fault:
            logger.warning(
                "extraction_failed collection=%(collection)s code=%(code)s",
                {"collection": name, "code": fault.code},
            )


class FactWorker(RetentionWorker):
    """Starts runs of extraction in the process that holds the lock.

    A type of its own, as the engine runs one background worker of each type.
    """
