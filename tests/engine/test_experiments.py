"""Experiments through the engine: sets, runs as jobs, defaults with undo, and who sees what."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import SCOPES, Principal
from conspectus.model.experiments import NewEvidence, NewQuestion, Question, QuestionSet, Run
from conspectus.model.filter import Eq
from conspectus.model.query import QueryContext
from conspectus.model.records import NewDocument
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder

BACKUPS = NewDocument("The backup runs at two.", "Backups", key="backups")
SEA = NewDocument("The sea is green and wide.", "Sea", key="sea")
WHEN = NewQuestion("when does the backup run", (NewEvidence("backups", 0, 23),), "when")
COLOR = NewQuestion("which color has the sea", (NewEvidence("sea", 0, 17),), "color")
UNRELATED = NewQuestion("zebra", (NewEvidence("sea", 0, 26),), "unrelated")


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    """A store with two documents in two sources."""
    settings = Settings(user_directory="open")
    async with conspectus.open(tmp_path / "store", settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.add([BACKUPS], source="office", wait=True)
        await engine.add([SEA], source="coast", wait=True)
        yield engine


@pytest.fixture
async def question_set(owner: Engine) -> QuestionSet:
    return await owner.experiments.create_set("support", [WHEN, COLOR])


async def enter(owner: Engine, name: str) -> Engine:
    """The store as a new editor of the collection."""
    await owner.people.create_user(name)
    await owner.access.grant("default", Principal("user", name), "editor")
    key = await owner.keys.create(name, scopes=SCOPES)
    return owner.as_person(await owner.keys.authenticate(key.secret))


async def finish(engine: Engine, run: Run) -> Run:
    """The run after its job has ended."""
    await engine.jobs.wait(run.job, timeout=30)
    return (await engine.experiments.get_run(run.id)).run


async def questions_of(engine: Engine, question_set: QuestionSet) -> list[Question]:
    return list((await engine.experiments.get_set(question_set.id)).questions)


async def test_a_set_names_documents_by_key_or_id(owner: Engine) -> None:
    [document] = (await owner.documents.list(filter=Eq("key", "sea"))).documents
    by_id = replace(COLOR, evidence=(NewEvidence(document.id, 4, 7),))
    question_set = await owner.experiments.create_set("mixed", [WHEN, by_id])
    assert (question_set.questions, question_set.collection) == (2, "default")
    color, when = await questions_of(owner, question_set)
    assert (color.evidence[0].document, color.evidence[0].key, color.evidence[0].title) == (
        document.id,
        "sea",
        "Sea",
    )
    assert (when.key, when.query, when.changed) == ("when", WHEN.query, False)


async def test_evidence_that_cannot_be_resolved_is_refused(owner: Engine) -> None:
    create = owner.experiments.create_set
    with pytest.raises(NotFound, match="no document 'absent'"):
        await create("absent", [replace(WHEN, evidence=(NewEvidence("absent", 0, 1),))])
    with pytest.raises(InvalidInput, match="do not exist; it has 23"):
        await create("beyond", [replace(WHEN, evidence=(NewEvidence("backups", 5, 24),))])
    await owner.add([BACKUPS], source="copy", wait=True)
    with pytest.raises(InvalidInput, match="several documents have the key 'backups'"):
        await create("twice", [WHEN])
    assert (await owner.experiments.list_sets()).sets == ()


async def test_a_question_replaces_that_of_the_same_key(owner: Engine, question_set: QuestionSet) -> None:
    added = await owner.experiments.add_questions(question_set.id, [replace(WHEN, query="backup"), UNRELATED])
    assert added.questions == 3
    assert {question.query for question in await questions_of(owner, question_set)} == {
        "backup",
        COLOR.query,
        "zebra",
    }


async def test_a_name_is_used_once(owner: Engine, question_set: QuestionSet) -> None:
    with pytest.raises(Conflict, match="exists already"):
        await owner.experiments.create_set("support", [WHEN])


async def test_a_run_measures_windows_with_its_options(owner: Engine, question_set: QuestionSet) -> None:
    await owner.experiments.add_questions(question_set.id, [UNRELATED])
    run = await owner.experiments.start_run(
        question_set.id, max_tokens=[1_000, 0], retrievers=("keyword",), limit=1
    )
    assert (run.options, run.max_tokens) == ({"limit": 1, "retrievers": ["keyword"]}, (0, 1_000))
    run = await finish(owner, run)
    assert [(figure.max_tokens, round(figure.mean)) for figure in run.figures] == [(0, 0), (1_000, 67)]
    assert run.figures[1].low < run.figures[1].mean < run.figures[1].high
    assert run.questions == 3 and run.tokens > 0 and run.milliseconds > 0
    result = await owner.experiments.get_run(run.id)
    assert {question.key: question.shares for question in result.questions} == {
        "color": (0.0, 1.0),
        "unrelated": (0.0, 0.0),
        "when": (0.0, 1.0),
    }
    [when] = [question for question in result.questions if question.key == "when"]
    answer = await owner.experiments.get_run_question(run.id, when.question)
    assert answer.question.query == WHEN.query
    empty, window = answer.windows
    assert (empty.tokens, empty.passages) == (0, ())
    assert [(passage.key, passage.start, passage.end) for passage in window.passages] == [("backups", 0, 23)]


async def test_every_option_is_stored_and_used(owner: Engine, question_set: QuestionSet) -> None:
    run = await owner.experiments.start_run(
        question_set.id,
        filter=Eq("key", "sea"),
        thread_messages=2,
        min_confidence=0.0,
        name="only the sea",
    )
    assert run.options == {
        "filter": {"field": "key", "eq": "sea"},
        "thread_messages": 2,
    }
    await finish(owner, run)
    result = await owner.experiments.get_run(run.id)
    assert {question.key: question.shares[-1] for question in result.questions} == {"color": 1.0, "when": 0.0}
    assert [listed.name for listed in (await owner.experiments.list_runs()).runs] == ["only the sea"]


async def test_an_invalid_option_is_refused_at_once(owner: Engine, question_set: QuestionSet) -> None:
    with pytest.raises(InvalidInput, match="profile"):
        await owner.experiments.start_run(question_set.id, query_context=QueryContext(profile="no such"))
    assert (await owner.experiments.list_runs()).runs == ()


async def test_a_cancelled_run_goes_on_where_it_stopped(owner: Engine, question_set: QuestionSet) -> None:
    run = await finish(owner, await owner.experiments.start_run(question_set.id))
    store = owner._context.parts.experiments
    shares = await store.shares(run.id, None)
    before = await owner.experiments.get_run_question(run.id, shares[0].question)
    await owner.experiments.add_questions(question_set.id, [UNRELATED])
    job = await owner._context.parts.work.job_store.job(run.job)
    assert job is not None
    await owner._context.parts.work.job_store.change(job.id, state="cancelled")
    await owner.jobs.retry(run.job)
    run = await finish(owner, run)
    assert run.questions == 3
    assert await owner.experiments.get_run_question(run.id, shares[0].question) == before


async def test_a_run_of_changed_documents_only_fails(owner: Engine) -> None:
    question_set = await owner.experiments.create_set("one", [WHEN])
    await owner.add([replace(BACKUPS, text="The backup runs at three now.")], source="office", wait=True)
    [question] = await questions_of(owner, question_set)
    assert question.changed
    run = await owner.experiments.start_run(question_set.id)
    job = await owner.jobs.wait(run.job, timeout=30)
    assert (job.state, (await owner.experiments.get_run(run.id)).run.figures) == ("failed", ())
    assert "has no question whose documents are unchanged" in (job.error or "")


async def test_a_run_gives_the_collection_its_defaults_until_undone(
    owner: Engine, question_set: QuestionSet
) -> None:
    keywords = await owner.experiments.start_run(question_set.id, retrievers=("keyword",))
    multiplied = await owner.experiments.start_run(
        question_set.id, query_context=QueryContext(profile="multiplicative")
    )
    changed = await owner.experiments.use_run(keywords.id)
    assert changed.retrieval is not None
    assert (changed.retrieval.version, changed.retrieval.options, changed.retrieval.run) == (
        1,
        {"retrievers": ["keyword"]},
        keywords.id,
    )
    assert (await owner.retrieve("sea")).plan["retrievers"] == "keyword"
    assert (await owner.retrieve("sea", retrievers=("vector",))).plan["retrievers"] == "vector"
    await owner.experiments.use_run(multiplied.id)
    retrieval = await owner.retrieve("sea")
    assert retrieval.plan["retrievers"] == "keyword and vector"
    assert retrieval.plan["profile"] == "multiplicative"
    with pytest.raises(Conflict, match="the defaults are version 2"):
        await owner.experiments.undo_defaults("default", version=1)
    assert (await owner.experiments.undo_defaults("default", version=2)).retrieval == changed.retrieval
    assert (await owner.experiments.undo_defaults("default", version=1)).retrieval is None
    assert (await owner.retrieve("sea")).plan["retrievers"] == "keyword and vector"
    actions = {"use_run", "undo_defaults"}
    entries = (await owner.access.list_audit()).entries
    changes = sorted(entry.action for entry in entries if entry.action in actions)
    assert changes == ["undo_defaults", "undo_defaults", "use_run", "use_run"]


async def test_runs_do_not_have_the_defaults_of_the_collection(
    owner: Engine, question_set: QuestionSet
) -> None:
    hidden = await owner.experiments.start_run(question_set.id, min_similarity=1.0, retrievers=("vector",))
    await owner.experiments.use_run(hidden.id)
    assert (await owner.retrieve("sea")).hits == ()
    assert (await owner.window("sea", 100)).citations == ()
    run = await finish(owner, await owner.experiments.start_run(question_set.id, retrievers=("keyword",)))
    assert run.figures[-1].mean == 100.0


async def test_what_is_searched_is_no_default(owner: Engine, question_set: QuestionSet) -> None:
    run = await owner.experiments.start_run(question_set.id, filter=Eq("key", "sea"))
    with pytest.raises(InvalidInput, match="filter cannot be a default"):
        await owner.experiments.use_run(run.id)


async def test_only_editors_see_sets_and_only_managers_change_defaults(
    owner: Engine, question_set: QuestionSet
) -> None:
    ann = await enter(owner, "ann")
    run = await finish(ann, await ann.experiments.start_run(question_set.id))
    with pytest.raises(PermissionDenied):
        await ann.experiments.use_run(run.id)
    await owner.people.create_user("vic")
    await owner.access.grant("default", Principal("user", "vic"), "viewer")
    key = await owner.keys.create("vic", scopes=SCOPES)
    viewer = owner.as_person(await owner.keys.authenticate(key.secret))
    for call in (viewer.experiments.list_sets(), viewer.experiments.get_run(run.id)):
        with pytest.raises(PermissionDenied):
            await call
    await owner.people.create_user("stranger")
    key = await owner.keys.create("stranger", scopes=SCOPES)
    stranger = owner.as_person(await owner.keys.authenticate(key.secret))
    with pytest.raises(NotFound, match="no run"):
        await stranger.experiments.get_run(run.id)


async def test_a_question_ends_with_its_document(owner: Engine, question_set: QuestionSet) -> None:
    run = await finish(owner, await owner.experiments.start_run(question_set.id))
    [document] = (await owner.documents.list(filter=Eq("key", "sea"))).documents
    await owner.documents.delete([document.id])
    assert [question.key for question in await questions_of(owner, question_set)] == ["when"]
    result = await owner.experiments.get_run(run.id)
    assert [question.key for question in result.questions] == ["when"]


async def test_a_purge_deletes_questions_about_texts_that_were_replaced(
    owner: Engine, question_set: QuestionSet
) -> None:
    await owner.add([replace(SEA, text="The sea is grey.")], source="coast", wait=True)
    assert len(await questions_of(owner, question_set)) == 2
    [document] = (await owner.documents.list(filter=Eq("key", "backups"))).documents
    await owner.documents.delete([document.id], purge=True)
    assert await questions_of(owner, question_set) == []


async def test_sensitive_data_are_masked(tmp_path: Path) -> None:
    settings = Settings(sensitive="emails=mask")
    async with conspectus.open(tmp_path / "masked", settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.add([SEA], wait=True)
        secret = replace(COLOR, query="what does ann@example.org say")
        question_set = await engine.experiments.create_set("masked", [secret])
        [question] = await questions_of(engine, question_set)
        assert "ann@" not in question.query


async def test_a_deleted_run_ends_its_job(owner: Engine, question_set: QuestionSet) -> None:
    run = await owner.experiments.start_run(question_set.id)
    await owner.experiments.delete_run(run.id)
    assert (await owner.jobs.wait(run.job, timeout=30)).state in {"cancelled", "succeeded"}
    with pytest.raises(NotFound):
        await owner.experiments.get_run(run.id)
    await owner.experiments.delete_set(question_set.id)
    assert (await owner.experiments.list_sets()).sets == ()
