"""The service of experiments: question sets, their runs, and the defaults of a collection."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Unpack, cast
from uuid import uuid4

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_own_origin, require_scope
from conspectus.access.reader import MAX_CHECKED
from conspectus.engine.context import EngineContext
from conspectus.engine.job_cancellation import cancel_job
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.experiments import (
    MAX_QUESTIONS,
    RUN_BUDGETS,
    Evidence,
    NewEvidence,
    NewQuestion,
    Question,
    QuestionResult,
    QuestionSet,
    QuestionSetContent,
    QuestionSetPage,
    Run,
    RunPage,
    RunQueryOptions,
    RunResult,
    StoredRun,
    default_options,
    run_options_to_json,
)
from conspectus.model.filter import In, Or, in_documents
from conspectus.model.pages import pages
from conspectus.model.parameters import (
    CollectionName,
    Cursor,
    Name,
    PageLimit,
    QuestionIdentifier,
    QuestionSetIdentifier,
    RunIdentifier,
)
from conspectus.model.query import QueryOptions
from conspectus.model.records import Collection, Document, Metadata, RetrievalDefaults
from conspectus.retrieval.query_checks import check_query
from conspectus.text.hashing import content_hash

MAX_NAMES: Final = 100
"""Documents that are looked up at once."""
MAX_BUDGETS: Final = 8
MAX_NAME_LENGTH: Final = 200
USE_RUN: Final = "change the defaults of a collection"
NewQuestions = Annotated[Sequence[NewQuestion], Length(1, MAX_QUESTIONS), "Questions with what answers them."]


class ExperimentService(Service):
    """Experiments of a collection, for its editors: sets of questions, and runs that measure windows.

    You see the questions about documents that you may read.
    """

    def __init__(self, context: EngineContext, queue: JobQueue) -> None:
        super().__init__(context)
        self._store = context.parts.experiments
        self._queue = queue

    async def create_set(
        self,
        name: Annotated[Name, "Name of the set.", Example("support")],
        questions: NewQuestions,
        *,
        collection: CollectionName = "default",
    ) -> QuestionSet:
        """Store a set of questions about a collection.

        Raises NotFound for a document, InvalidInput for a key that several documents have, or Conflict if the
        collection has a set of that name.
        """
        access = await self._require_editor(collection, "write a question set")
        question_set = QuestionSet(
            str(uuid4()),
            access.collection.name,
            self._context.screen_value("question_sets.name", name, access.collection.id),
            self._parts.clock(),
            len(questions),
        )
        resolved = await self._resolve(questions, access)
        await self._store.add_set(question_set, resolved, access.collection.id)
        return replace(question_set, questions=len(resolved))

    async def add_questions(
        self, question_set: QuestionSetIdentifier, questions: NewQuestions
    ) -> QuestionSet:
        """Add questions to a set, in place of those with the same key. Raises NotFound or InvalidInput."""
        stored, access = await self._find_set(question_set)
        require_scope(self._person, "write", "write a question set")
        await self._store.add_questions(stored.id, await self._resolve(questions, access))
        return (await self._find_set(question_set))[0]

    async def list_sets(
        self, *, collection: CollectionName = "default", after: Cursor | None = None, limit: PageLimit = 100
    ) -> QuestionSetPage:
        """List the question sets of a collection, newest first. Raises NotFound or PermissionDenied."""
        access = await self._readable(collection)
        page = await self._store.sets(access.collection.id, after=after, limit=limit)
        name = access.collection.name
        return replace(page, sets=tuple(replace(stored, collection=name) for stored in page.sets))

    async def get_set(self, question_set: QuestionSetIdentifier) -> QuestionSetContent:
        """Return a set with its questions. Raises NotFound."""
        stored, access = await self._find_set(question_set)
        questions = await self._store.questions(stored.id, access.readable_sources)
        return QuestionSetContent(stored, tuple(questions))

    async def delete_set(self, question_set: QuestionSetIdentifier) -> None:
        """Delete a set with its runs. Raises NotFound."""
        stored, access = await self._find_set(question_set)
        require_scope(self._person, "write", "delete a question set")
        list_runs = self._store.list_runs
        async for page in pages(list_runs, access.collection.id, stored.id, after=None, limit=MAX_NAMES):
            for run in page.runs:
                await self._cancel(run)
        await self._store.delete_set(stored.id)

    async def start_run(
        self,
        question_set: QuestionSetIdentifier,
        *,
        name: Annotated[str, Length(0, MAX_NAME_LENGTH), "Name of the run; by default its options."] = "",
        max_tokens: Annotated[
            Sequence[Annotated[int, Range(0)]], Length(1, MAX_BUDGETS), "Tokens of the windows."
        ] = RUN_BUDGETS,
        **options: Unpack[RunQueryOptions],
    ) -> Run:
        """Ask the questions of a set in a background job, and measure how much evidence is in the windows.

        The options are the fields of Query; the defaults of the collection do not apply. Raises NotFound.
        """
        stored, access = await self._find_set(question_set)
        require_scope(self._person, "write", "run a question set")
        check_query("", cast(QueryOptions, options), self._parts.settings)
        collection_id, screen = access.collection.id, self._context.screen_value
        option_changes = run_options_to_json(options)
        job = self._queue.new_job("evaluation", access, None, title=stored.name, arguments={})
        run = Run(
            str(uuid4()),
            stored.id,
            access.collection.name,
            screen("runs.name", name or _describe(option_changes), collection_id),
            self._parts.clock(),
            job.id,
            screen("runs.options", option_changes, collection_id),
            tuple(sorted({*max_tokens})),
        )
        await self._store.add_run(run)
        await self._queue.submit(job)
        return run

    async def list_runs(
        self,
        *,
        collection: CollectionName = "default",
        question_set: Annotated[str, Length(1, 200), "Only runs of this set."] | None = None,
        after: Cursor | None = None,
        limit: PageLimit = 100,
    ) -> RunPage:
        """List the runs of the sets of a collection, newest first. Raises NotFound or PermissionDenied."""
        access = await self._readable(collection)
        page = await self._store.list_runs(access.collection.id, question_set, after=after, limit=limit)
        return replace(page, runs=tuple(_with_collection(run, access) for run in page.runs))

    async def get_run(self, run: RunIdentifier) -> RunResult:
        """Return a run with the shares of its questions so far. Raises NotFound."""
        stored, access = await self._find_run(run)
        questions = await self._store.shares(run, access.readable_sources)
        return RunResult(_with_collection(stored.run, access), tuple(questions))

    async def get_run_question(self, run: RunIdentifier, question: QuestionIdentifier) -> QuestionResult:
        """Return a question of a run with its windows. Raises NotFound."""
        _, access = await self._find_run(run)
        answer = await self._store.windows(run, question, access.readable_sources)
        if answer is None:
            raise NotFound("question", question)
        return QuestionResult(answer[0], tuple(answer[1]))

    async def delete_run(self, run: RunIdentifier) -> None:
        """Delete a run; one that is not finished is cancelled. Raises NotFound."""
        stored, _ = await self._find_run(run)
        require_scope(self._person, "write", "delete a run")
        await self._cancel(stored.run)
        await self._store.delete_run(run)

    async def use_run(self, run: RunIdentifier) -> Collection:
        """Make the options of a run the defaults of searches and windows of its collection.

        An option that a search leaves at its built-in value is that of the collection then. It needs the role
        manager. Raises NotFound, or InvalidInput for an option that decides what is searched, as a filter.
        """
        stored, access = await self._find_run(run)
        self._require_manager(access)
        options = default_options(stored.run.options)
        defaults = RetrievalDefaults(0, options, self._parts.clock(), stored.run.id)
        changed = await self._store.set_defaults(stored.collection, defaults)
        version = changed.retrieval.version if changed.retrieval else 0
        await self._context.note_change("use_run", stored.collection, stored.collection, f"version {version}")
        return replace(access, collection=changed).redacted

    async def undo_defaults(
        self,
        collection: CollectionName,
        *,
        version: Annotated[int, Range(1), "Version of the defaults that is undone."],
    ) -> Collection:
        """Restore the defaults that a collection had before a version.

        Raises NotFound, or Conflict if another version is current.
        """
        access = await self._authorized.collection(collection)
        self._require_manager(access)
        collection_id = access.collection.id
        changed = await self._store.undo_defaults(collection_id, version)
        await self._context.note_change("undo_defaults", collection_id, collection_id, f"version {version}")
        return replace(access, collection=changed).redacted

    def _require_manager(self, access: CollectionAccess) -> None:
        require_scope(self._person, "write", USE_RUN)
        require_own_origin(self._person, USE_RUN)
        access.require("manager", USE_RUN)

    async def _require_editor(self, collection: str, action: str) -> CollectionAccess:
        return await self._context.collection_with_role(collection, "editor", action)

    async def _readable(self, collection: str) -> CollectionAccess:
        access = await self._authorized.collection(collection)
        access.require("editor", "see question sets")
        return access

    async def _find_set(self, question_set: str) -> tuple[QuestionSet, CollectionAccess]:
        stored = await self._store.get_set(question_set)
        access = None if stored is None else await self._authorized.find(stored.collection)
        if stored is None or access is None:
            raise NotFound("question set", question_set)
        access.require("editor", "see question sets")
        return replace(stored, collection=access.collection.name), access

    async def _find_run(self, run: str) -> tuple[StoredRun, CollectionAccess]:
        stored = await self._store.get_run(run)
        access = None if stored is None else await self._authorized.find(stored.collection)
        if stored is None or access is None:
            raise NotFound("run", run)
        access.require("editor", "see question sets")
        return stored, access

    async def _cancel(self, run: Run) -> None:
        job = await self._parts.work.job_store.job(run.job)
        if job is not None:
            await cancel_job(self._context, job)

    async def _resolve(self, questions: Sequence[NewQuestion], access: CollectionAccess) -> list[Question]:
        """Return questions to store; of several with one key, the last. Raises NotFound or InvalidInput."""
        names = dict.fromkeys(piece.document for question in questions for piece in question.evidence)
        documents = await self._find_documents(list(names), access)
        screen, collection_id = self._context.screen_value, access.collection.id
        resolved: dict[str, Question] = {}
        for question in questions:
            key = screen("questions.key", question.key or content_hash(question.query), collection_id)
            query = screen("questions.query", question.query, collection_id)
            evidence = tuple(_locate(piece, documents) for piece in question.evidence)
            resolved[key] = Question(str(uuid4()), key, query, evidence)
        return list(resolved.values())

    async def _find_documents(self, names: Sequence[str], access: CollectionAccess) -> dict[str, Document]:
        """Return the readable documents of the collection by id and by key.

        A page has more documents than a block has names. Raises InvalidInput for a key that several have.
        """
        documents: dict[str, Document] = {}
        for start in range(0, len(names), MAX_NAMES):
            block = names[start : start + MAX_NAMES]
            by_name = Or((In("key", tuple(block)), in_documents(block)))
            page, _ = await self._authorized.list(access, by_name, after=None, limit=MAX_CHECKED)
            for document in page:
                documents[document.id] = document
                if documents.setdefault(document.key, document).id != document.id:
                    raise InvalidInput(
                        "document", f"several documents have the key {document.key!r}; give an id"
                    )
        return documents


def _locate(piece: NewEvidence, documents: dict[str, Document]) -> Evidence:
    document = documents.get(piece.document)
    if document is None:
        raise NotFound("document", piece.document)
    if not piece.start < piece.end <= document.characters:
        raise InvalidInput(
            "evidence",
            f"characters {piece.start} to {piece.end} of {piece.document!r} do not exist; "
            f"it has {document.characters}",
        )
    return Evidence(document.id, piece.start, piece.end)


def _describe(options: Metadata) -> str:
    """Return the options of a run as its name."""
    described = ", ".join(f"{name} {json.dumps(option)}" for name, option in options.items())
    return described[:MAX_NAME_LENGTH] or "built-in options"


def _with_collection(run: Run, access: CollectionAccess) -> Run:
    return replace(run, collection=access.collection.name)
