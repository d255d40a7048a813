"""Tasks on an engine in this process and on a server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.served import served

import conspectus
from conspectus import Engine, RemoteEngine, Settings
from conspectus.engine.task_documents import attachment_document
from conspectus.engine.tasks import TaskService
from conspectus.errors import InvalidInput, NotFound, PreconditionFailed
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument
from conspectus.model.tasks import Attachment, Task
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
LOGIN = Task("auth-1", "Fix login", "The form forgets the password.", ("auth", "web"), priority="high")
JWT = Task("auth-2", "Update JWT", status="completed")
REDESIGN = Task("ui-1", "Redesign")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture(params=["embedded", "remote"])
async def either(engine: Engine, request: pytest.FixtureRequest) -> AsyncIterator[Engine | RemoteEngine]:
    if request.param == "embedded":
        yield engine
        return
    first = await engine.keys.create_first()
    assert first is not None
    async with (
        served(application(engine, SETTINGS)) as url,
        conspectus.connect(url, api_key=first.secret, settings=SETTINGS) as remote,
    ):
        yield remote


@pytest.fixture
def tasks(engine: Engine) -> TaskService:
    return engine.tasks


def without_stored_fields(task: Task) -> Task:
    """What the caller gave of a stored task."""
    return Task(**{name: getattr(task, name) for name in Task.__dataclass_fields__})


async def test_both_engines_do_all_that_there_is(either: Engine | RemoteEngine) -> None:
    tasks = either.tasks
    assert [task.outcome for task in await tasks.put_many([LOGIN, JWT, REDESIGN])] == ["added"] * 3
    await tasks.attach("auth-1", Attachment("log", "The password was wrong.", "Log"))
    await tasks.update("auth-1", status="in_progress")
    assert (await tasks.get("auth-1")).status == "in_progress"
    assert [attachment.text for attachment in await tasks.attachments("auth-1")] == [
        "The password was wrong."
    ]
    hits = await tasks.search("password", 2, status="in_progress")
    assert {hit.type for hit in hits} == {"task", "attachment"}
    context = await tasks.build_context("password", 1)
    assert (context.outcome, len(context.results)) == ("found", 1)
    assert (await tasks.detach("auth-1", "log")).documents == 1
    assert {task.id for task in (await tasks.list()).tasks} == {"auth-1", "auth-2", "ui-1"}
    assert (await tasks.delete("auth-1")).documents == 1
    with pytest.raises(NotFound, match="no task 'auth-1'"):
        await tasks.get("auth-1")


@pytest.mark.parametrize(
    "task",
    [
        LOGIN,
        JWT,
        Task("a/b%2Fc", "Slashes", metadata={"points": 3, "who": {"name": "Ann"}}),
        Task("\U0001f680 id\nof two lines", "  Title with spaces ", "  indented\n\ttext  "),
        Task("same", "Twice", "Twice"),
        Task("tagged", "Only tags", tags=("a, b", "Tags: x")),
        Task("tail", "Description like tags", "Tags: auth", ("auth",)),
    ],
)
async def test_a_task_comes_back_as_it_was_given(tasks: TaskService, task: Task) -> None:
    await tasks.put(task)
    assert without_stored_fields(await tasks.get(task.id)) == task
    assert without_stored_fields((await tasks.list()).tasks[0]) == task


@pytest.mark.parametrize(
    ("field", "task"),
    [
        ("id", Task("", "x")),
        ("id", Task(" ", "x")),
        ("id", Task("x" * 201, "x")),
        ("title", Task("x", " \n")),
        ("title", Task("x", "y" * 1_001)),
        ("status", replace(LOGIN, status="done")),
        ("status", replace(LOGIN, status=None)),
        ("priority", replace(LOGIN, priority="urgent")),
        ("priority", replace(LOGIN, priority="")),
        ("tags", replace(LOGIN, tags=("a", " "))),
        ("tags", replace(LOGIN, tags="auth")),
        ("metadata", replace(LOGIN, metadata={"status": "completed"})),
        ("metadata", replace(LOGIN, metadata={"seen": object()})),
    ],
)
async def test_what_is_no_task_is_refused_and_writes_nothing(
    tasks: TaskService, field: str, task: Task
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await tasks.put_many([JWT, task])
    assert refused.value.field == field
    assert (await tasks.list()).tasks == ()


async def test_writing_again_replaces_and_says_so(tasks: TaskService) -> None:
    outcomes = [
        (await tasks.put(task)).outcome
        for task in (LOGIN, LOGIN, replace(LOGIN, status="completed"), replace(LOGIN, title="Mend login"))
    ]
    assert outcomes == ["added", "unchanged", "updated", "replaced"]
    assert without_stored_fields(await tasks.get("auth-1")) == replace(LOGIN, title="Mend login")


async def test_the_last_of_two_tasks_with_one_id_stays(tasks: TaskService) -> None:
    written = await tasks.put_many([JWT, replace(JWT, title="First"), replace(JWT, title="Second"), LOGIN])
    assert [task.outcome for task in written] == ["added", "replaced", "replaced", "added"]
    assert (await tasks.get("auth-2")).title == "Second"


async def test_many_tasks_are_written_in_batches(tasks: TaskService) -> None:
    written = await tasks.put_many((Task(f"t-{n}", f"Task number {n}") for n in range(1_203)), wait=False)
    assert [task.id for task in written] == [f"t-{n}" for n in range(1_203)]
    first = await tasks.list(limit=1_000)
    rest = await tasks.list(limit=1_000, after=first.next)
    assert (len(first.tasks), len(rest.tasks), rest.next) == (1_000, 203, None)
    assert {task.id for task in (*first.tasks, *rest.tasks)} == {task.id for task in written}


async def test_an_update_changes_what_is_named(tasks: TaskService) -> None:
    await tasks.put(LOGIN)
    await tasks.update("auth-1", priority=None, tags=("web",))
    assert without_stored_fields(await tasks.get("auth-1")) == replace(LOGIN, priority=None, tags=("web",))


async def test_an_update_that_cannot_be_is_refused(tasks: TaskService) -> None:
    with pytest.raises(NotFound):
        await tasks.update("auth-1", status="completed")
    await tasks.put(LOGIN)
    with pytest.raises(NotFound):
        await tasks.update("auth-9", status="completed")
    for changes in ({"status": "done"}, {"title": ""}, {"id": "x"}, {"parent": "x"}):
        with pytest.raises(InvalidInput):
            await tasks.update("auth-1", **changes)
    assert without_stored_fields(await tasks.get("auth-1")) == LOGIN


async def test_an_update_of_what_was_read_before(tasks: TaskService) -> None:
    await tasks.put(LOGIN)
    read = await tasks.get("auth-1")
    await tasks.update("auth-1", if_match=read.fingerprint, status="in_progress")
    with pytest.raises(PreconditionFailed):
        await tasks.update("auth-1", if_match=read.fingerprint, status="completed")
    assert (await tasks.get("auth-1")).status == "in_progress"


async def test_tasks_are_listed_by_status_priority_and_tag(tasks: TaskService) -> None:
    await tasks.put_many([LOGIN, JWT, replace(REDESIGN, priority="high", tags=("web",))])
    await tasks.attach("auth-1", Attachment("log", "A log"))
    for options, ids in (
        ({}, {"auth-1", "auth-2", "ui-1"}),
        ({"status": "completed"}, {"auth-2"}),
        ({"priority": "high", "tag": "auth"}, {"auth-1"}),
        ({"tag": "web"}, {"auth-1", "ui-1"}),
        ({"tag": "we"}, set()),
    ):
        assert {task.id for task in (await tasks.list(**options)).tasks} == ids
    with pytest.raises(InvalidInput):
        await tasks.list(status="done")


async def test_reading_makes_nothing(engine: Engine, tasks: TaskService) -> None:
    assert (await tasks.list()).tasks == ()
    assert await tasks.search("anything") == []
    assert (await tasks.delete("x")).documents == 0
    with pytest.raises(NotFound):
        await tasks.attachments("x")
    assert await tasks.put_many([]) == []
    assert await engine.collections.list() == []


async def test_tasks_are_documents_that_everything_else_can_find(engine: Engine, tasks: TaskService) -> None:
    await tasks.put(LOGIN)
    assert (await engine.collections.list_sources(collection="tasks"))[0].kind == "tasks"
    window = await engine.window("password", 100, collection="tasks", filter=Eq("kind", "task"))
    assert "The form forgets the password." in window.text
    assert await engine.documents.count(collection="tasks", filter=Eq(("priority",), "high")) == 1


async def test_what_is_put_beside_them_is_no_task(engine: Engine, tasks: TaskService) -> None:
    await tasks.put(LOGIN)
    strange = [
        NewDocument("password", key="page"),
        NewDocument("password", key="x%", kind="task", metadata={"task_id": "x%", "status": "pending"}),
        NewDocument("password", key="y", kind="task", metadata={"task_id": "y", "status": ["pending"]}),
        NewDocument(
            "password", key="z", kind="task", metadata={"task_id": "z", "status": "pending", "priority": 1}
        ),
    ]
    await engine.add(strange, source="tasks", collection="tasks", wait=True)
    assert [task.id for task in (await tasks.list()).tasks] == ["auth-1"]
    assert [hit.task_id for hit in await tasks.search("password", 20)] == ["auth-1"]
    with pytest.raises(NotFound):
        await tasks.get("z")


async def test_two_lists_of_tasks_do_not_meet(engine: Engine) -> None:
    mine, yours = engine.tasks, engine.tasks.using(source="yours")
    await mine.put(LOGIN)
    await yours.put(replace(LOGIN, title="Yours"))
    assert (await mine.get("auth-1")).title == "Fix login"
    assert [hit.title for hit in await yours.search("login", 9)] == ["Yours"]
    await yours.delete("auth-1")
    assert (await mine.get("auth-1")).title == "Fix login"


async def test_updates_at_once_lose_nothing(either: Engine | RemoteEngine) -> None:
    tasks = either.tasks
    await tasks.put(REDESIGN)
    await tasks.attach("ui-1", Attachment("sketch", "A sketch"))
    changes: list[dict[str, object]] = [
        {"status": "completed"},
        {"priority": "critical"},
        {"tags": ("ui",)},
        {"title": "Draw anew"},
        {"description": "All of it."},
    ]
    await asyncio.gather(
        *(tasks.update("ui-1", wait=False, **change) for change in changes),
        *(tasks.attach("ui-1", Attachment(f"a-{n}", f"Text {n}"), wait=False) for n in range(4)),
    )
    assert without_stored_fields(await tasks.get("ui-1")) == Task(
        "ui-1", "Draw anew", "All of it.", ("ui",), "completed", "critical"
    )
    await either.documents.wait_until_embedded(collection="tasks")
    hits = await tasks.search("text", 20, status="completed", priority="critical")
    assert len(hits) == 6


async def test_creations_at_once_leave_one_task(tasks: TaskService) -> None:
    rivals = [replace(LOGIN, title=f"Title {n}") for n in range(8)]
    await asyncio.gather(*(tasks.put(task, wait=False) for task in rivals))
    assert (await tasks.get("auth-1")).title in {task.title for task in rivals}
    assert len((await tasks.list()).tasks) == 1


async def test_many_tasks_change_along_with_their_attachments(engine: Engine, tasks: TaskService) -> None:
    stored = [Task(f"t-{n}", f"Task {n}") for n in range(300)]
    documents = [task.document for task in await tasks.put_many(stored, wait=False)]
    texts = [
        attachment_document(Attachment("a", "A text"), task, parent=document)
        for task, document in zip(stored[1:], documents[1:], strict=True)
    ]
    await engine.add(texts, source="tasks", collection="tasks", wait=True)
    written = await tasks.put_many(replace(task, status="completed") for task in stored)
    assert [task.id for task in written] == [task.id for task in stored]
    assert {task.outcome for task in written} == {"updated"}
    assert await tasks.search("text", 100, status="pending") == []
    assert {hit.type for hit in await tasks.search("text", 100, status="completed")} == {"attachment"}
    assert sum(task.has_attachments for task in (await tasks.list(limit=300)).tasks) == 299


async def test_a_child_that_is_none_of_theirs_stays_as_it_is(engine: Engine, tasks: TaskService) -> None:
    written = await tasks.put(LOGIN)
    strange = NewDocument("Strange", key="strange", author="ann", parent=written.document)
    await engine.add(strange, source="tasks", collection="tasks", wait=True)
    await tasks.update("auth-1", status="completed")
    assert await tasks.attachments("auth-1") == []
    assert not (await tasks.get("auth-1")).has_attachments
    target = Eq("author", "ann")
    assert (await engine.documents.list(collection="tasks", filter=target)).documents[0].metadata == {}
    assert (await tasks.delete("auth-1")).documents == 2
