"""The store of experiments on SQLite and on PostgreSQL: sets, runs, who reads them, and defaults."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf

from conspectus.errors import Conflict, NotFound
from conspectus.model.experiments import Evidence, Passage, Question, QuestionSet, Run, RunFigure, RunWindow
from conspectus.model.ids import DocumentId, JobId, SourceId
from conspectus.model.records import RetrievalDefaults
from conspectus.records.experiments import SqlExperiments
from conspectus.records.store import SqlRecords, open_records

LETTERS = SourceId("letters")
SET = QuestionSet("set", SHELF, "support", NOON)
RUN = Run("run", "set", SHELF, "keywords", NOON, JobId("job"), {"retrievers": ["keyword"]}, (100, 200))


def window(max_tokens: int, share: float, *documents: str) -> RunWindow:
    """A window with the first characters of documents."""
    return RunWindow(max_tokens, 9, 1.5, share, tuple(Passage(document, 0, 3) for document in documents))


class TestSqlExperiments:
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[SqlRecords]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()

    @pytest.fixture
    async def ids(self, records: SqlRecords) -> list[DocumentId]:
        """A note and a letter."""
        await records.create_collection(shelf())
        for name in (NOTES, LETTERS):
            await records.put_source(notes(name))
        batch = [prepared("a", "first"), prepared("b", "second", source=LETTERS)]
        await records.write(batch)
        return [written.document.id for written in batch]

    @pytest.fixture
    async def store(self, records: SqlRecords, ids: list[DocumentId]) -> SqlExperiments:
        """A set with a question about each document, and a run with the windows of both."""
        experiments = SqlExperiments(records.transactions)
        questions = [
            Question(name, name, f"question {name}", (Evidence(document, 0, 3),))
            for name, document in zip(("note", "letter"), ids, strict=True)
        ]
        await experiments.add_set(SET, questions, SHELF)
        await experiments.add_run(RUN)
        for name in ("note", "letter"):
            assert await experiments.add_windows("run", name, [window(100, 0.0), window(200, 1.0, *ids)])
        return experiments

    async def test_a_set_and_a_run_come_back(self, store: SqlExperiments, ids: list[DocumentId]) -> None:
        assert (await store.sets(SHELF, after=None, limit=9)).sets == (replace(SET, questions=2),)
        letter, note = await store.questions("set", None)
        assert (note.query, note.evidence[0].document, note.changed) == ("question note", ids[0], False)
        await store.finish_run("run", [RunFigure(100, 0.0, 0.0, 0.0)])
        stored = await store.get_run_of_job("job")
        assert stored is not None and stored.collection == SHELF
        expected = replace(RUN, questions=2, tokens=36, milliseconds=6.0)
        assert replace(stored.run, figures=()) == expected
        assert (await store.list_runs(SHELF, "set", after=None, limit=9)).runs == (stored.run,)
        assert [shares.shares for shares in await store.shares("run", None)] == [(0.0, 1.0)] * 2
        assert letter.key == "letter"

    async def test_hidden_documents_hide_their_questions_and_passages(
        self, store: SqlExperiments, ids: list[DocumentId]
    ) -> None:
        assert [question.key for question in await store.questions("set", [NOTES])] == ["note"]
        assert [shares.key for shares in await store.shares("run", [NOTES])] == ["note"]
        answer = await store.windows("run", "note", [NOTES])
        assert answer is not None
        assert [passage.document for passage in answer[1][1].passages] == [ids[0]]
        assert await store.windows("run", "letter", [NOTES]) is None

    async def test_a_question_ends_with_its_document_and_a_run_with_its_set(
        self, store: SqlExperiments, records: SqlRecords, ids: list[DocumentId]
    ) -> None:
        await records.delete([ids[1]])
        assert [question.key for question in await store.questions("set", None)] == ["note"]
        assert not await store.add_windows("run", "letter", [window(100, 0.0)])
        assert await store.delete_set("set")
        assert await store.get_run("run") is None
        with pytest.raises(NotFound):
            await store.add_run(RUN)

    async def test_defaults_are_versions_that_are_undone(
        self, store: SqlExperiments, records: SqlRecords
    ) -> None:
        first = RetrievalDefaults(0, {"rerank": False}, NOON, "run")
        assert (await store.set_defaults(SHELF, first)).retrieval == replace(first, version=1)
        second = replace(first, options={})
        changed = await store.set_defaults(SHELF, second)
        assert changed.retrieval == replace(second, version=2)
        assert await records.collection(SHELF) == changed
        with pytest.raises(Conflict):
            await store.undo_defaults(SHELF, 1)
        assert (await store.undo_defaults(SHELF, 2)).retrieval == replace(first, version=1)
        assert (await store.undo_defaults(SHELF, 1)).retrieval is None


class TestPostgresExperiments(TestSqlExperiments):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records
