"""Connections that verify: what a person may not open at the remote now is shown in no way."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tests.support.note_server import NoteServer, install_note_connector

import conspectus
from conspectus import Engine, Settings
from conspectus.connectors import EVERYONE
from conspectus.engine.remote_checks import NO_ANSWER
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.access import Person, Principal
from conspectus.model.chat import ChatRequest, Failure
from conspectus.model.filter import Eq
from conspectus.testing.chat_models import ScriptedChatModel

PASSWORD = "hunter2"
SETTINGS = Settings(
    embedder="none",
    job_max_attempts=1,
    secret_key=Fernet.generate_key().decode(),
    user_directory="open",
    answer_records="all",
    verify_cache_seconds=0,
)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoteServer]:
    install_note_connector(tmp_path / "packages", monkeypatch)
    with NoteServer("office", PASSWORD, people={"ann", "ben"}).run() as running:
        running.put("plan", "Main", "The lantern plan of Ann Shepherd.", {"ann", "ben"})
        running.put("menu", "Main", "The lantern menu.", {EVERYONE})
        yield running


@dataclass
class Office:
    """A verified server, read by ann and ben."""

    owner: Engine
    ann: Engine
    ben: Engine


async def open_office(owner: Engine) -> Office:
    await owner.connections.create(
        "office",
        "verified",
        {"server": "office", "verify": True},
        credentials={"password": PASSWORD},
        collection="team",
    )
    views = []
    for name in ("ann", "ben"):
        user = await owner.people.create_user(name)
        await owner.access.grant("team", Principal("user", user.id), "manager")
        await owner.connections.map_person("office", name, name, collection="team")
        views.append(owner.as_person(Person(name, id=user.id)))
    job = await owner.jobs.wait((await owner.connections.sync("office", collection="team")).id)
    assert job.state == "succeeded", job.error
    return Office(owner, *views)


@pytest.fixture
async def office(tmp_path: Path, notes: NoteServer) -> AsyncIterator[Office]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as owner:
        yield await open_office(owner)


@pytest.fixture
async def caching_office(tmp_path: Path, notes: NoteServer) -> AsyncIterator[Office]:
    """The office with answers that hold for a minute, and two documents in a batch."""
    settings = replace(SETTINGS, verify_cache_seconds=60, verify_max_documents=2)
    async with conspectus.open(tmp_path / "store", settings=settings) as owner:
        yield await open_office(owner)


async def find(engine: Engine) -> set[str]:
    retrieval = await engine.search.retrieve("lantern", collection="team")
    return {hit.document.key for hit in retrieval.hits}


async def test_a_search_asks_the_remote_as_each_person(office: Office, notes: NoteServer) -> None:
    assert await find(office.ann) == await find(office.ben) == {"plan", "menu"}
    assert set(notes.questions) == {(name, key) for name in ("ann", "ben") for key in ("plan", "menu")}
    notes.share("plan", {"ben"})
    assert (await find(office.ann), await find(office.ben)) == ({"menu"}, {"plan", "menu"})
    assert await find(office.owner) == set()


async def test_the_plan_says_that_the_remote_was_asked(office: Office, notes: NoteServer) -> None:
    notes.share("plan", {"ben"})
    retrieval = await office.ann.search.retrieve("lantern", collection="team")
    assert (retrieval.plan["remote_check"], NO_ANSWER in retrieval.notices) == ("done", False)
    everywhere = await office.ann.search.retrieve("lantern", collection="*")
    assert everywhere.plan["remote_check"] == "done"


async def test_a_result_tells_nothing_of_what_was_refused(office: Office, notes: NoteServer) -> None:
    notes.share("plan", set())
    refused = await office.ann.search.explain("lantern", collection="team")
    notes.delete("plan")
    await office.owner.jobs.wait((await office.owner.connections.sync("office", collection="team")).id)
    deleted = await office.ann.search.explain("lantern", collection="team")
    assert (refused.text, refused.notices) == (deleted.text, deleted.notices)
    assert [(one.document, one.status) for one in refused.trace] == [
        (one.document, one.status) for one in deleted.trace
    ]


async def test_a_remote_that_is_too_slow_shows_nothing(
    tmp_path: Path, notes: NoteServer, caplog: pytest.LogCaptureFixture
) -> None:
    settings = replace(SETTINGS, verify_timeout_seconds=0.2)
    async with conspectus.open(tmp_path / "store", settings=settings) as owner:
        office = await open_office(owner)
        notes.delay_seconds = 1
        retrieval = await office.ann.search.retrieve("lantern", collection="team")
        assert (retrieval.hits, NO_ANSWER in retrieval.notices) == ((), True)
        assert retrieval.plan["remote_check"] == "failed"
        assert "remote_check_failed" in caplog.text
        notes.delay_seconds = 0
        assert await find(office.ann) == {"plan", "menu"}


async def test_no_secret_is_told_when_a_check_fails(
    office: Office, notes: NoteServer, caplog: pytest.LogCaptureFixture
) -> None:
    notes.password = "another"
    retrieval = await office.ann.search.retrieve("lantern", collection="team")
    assert NO_ANSWER in retrieval.notices
    assert PASSWORD not in caplog.text + repr(retrieval)


async def test_answers_hold_for_some_seconds(caching_office: Office, notes: NoteServer) -> None:
    ann = caching_office.ann
    assert await find(ann) == {"plan", "menu"}
    questions = len(notes.questions)
    notes.share("plan", {"ben"})
    assert await find(ann) == {"plan", "menu"}
    assert len(notes.questions) == questions


async def test_a_remote_that_failed_is_not_asked_for_some_seconds(
    caching_office: Office, notes: NoteServer
) -> None:
    notes.answers_before_failure = 0
    assert await find(caching_office.ann) == set()
    requests = notes.requests
    assert await find(caching_office.ben) == set()
    assert notes.requests == requests


async def test_a_search_asks_for_the_best_documents_alone(caching_office: Office, notes: NoteServer) -> None:
    for number in range(5):
        notes.put(f"page{number}", "Main", f"A lantern of page {number}.", {EVERYONE})
    owner, ann = caching_office.owner, caching_office.ann
    await owner.jobs.wait((await owner.connections.sync("office", collection="team")).id)
    assert len(await find(ann)) == 2
    assert len(notes.questions) == 2


async def test_pages_of_a_list_are_as_long_as_a_batch(caching_office: Office, notes: NoteServer) -> None:
    for number in range(5):
        notes.put(f"page{number}", "Main", f"A lantern of page {number}.", {EVERYONE})
    owner, ann = caching_office.owner, caching_office.ann
    await owner.jobs.wait((await owner.connections.sync("office", collection="team")).id)
    notes.share("page3", set())
    keys, cursor, lengths = set(), None, []
    while True:
        page = await ann.documents.list(collection="team", after=cursor)
        keys |= {document.key for document in page.documents}
        lengths.append(len(page.documents))
        cursor = page.next
        if cursor is None:
            break
    assert keys == {"plan", "menu", "page0", "page1", "page2", "page4"}
    assert max(lengths) == 2


async def test_counts_are_of_what_may_be_opened(office: Office, notes: NoteServer) -> None:
    await office.owner.add("A harbor of its own.", collection="team", source="own")
    assert await office.ann.documents.count(collection="team") == 3
    notes.share("plan", {"ben"})
    assert await office.ann.documents.count(collection="team") == 2
    assert await office.ann.documents.count(collection="team", filter=Eq("key", "plan")) == 0


async def test_files_are_listed_while_they_may_be_opened(office: Office, notes: NoteServer) -> None:
    [folder] = {
        file.path.rpartition("/")[0] for file in (await office.ann.files.find("/team", name="plan")).entries
    }
    notes.share("plan", {"ben"})
    for listing in (await office.ann.files.find("/team"), await office.ann.files.list(folder)):
        assert [file.path.rpartition("/")[2] for file in listing.entries if not file.folder] in ([], ["menu"])
    with pytest.raises(NotFound):
        await office.ann.files.read(f"{folder}/plan")
    assert "plan" in (await office.ben.files.read(f"{folder}/plan")).text


async def test_entities_of_verified_passages_are_not_counted(office: Office) -> None:
    await office.owner.graph.set_entity_extraction(enabled=True, collection="team")
    await office.owner.add("Harbor Street is long.", collection="team", source="own", wait=True)
    await office.owner.graph.wait_until_extracted(collection="team")
    names = {entity.name for entity in await office.ann.graph.list_entities(collection="team")}
    assert "Ann Shepherd" not in names
    assert "Harbor Street" in names


async def test_a_graph_search_reaches_nothing_that_is_refused(office: Office, notes: NoteServer) -> None:
    await office.owner.graph.set_entity_extraction(enabled=True, collection="team")
    await office.owner.graph.wait_until_extracted(collection="team")
    for viewers, keys in (({"ann", "ben"}, {"plan"}), ({"ben"}, set[str]())):
        notes.share("plan", viewers)
        retrieval = await office.ann.search.retrieve("Ann Shepherd", collection="team", graph={})
        assert {hit.document.key for hit in retrieval.hits} == keys
        assert ("Ann Shepherd" in repr(retrieval.plan)) == bool(keys)


async def test_answer_records_are_read_while_their_documents_may_be_opened(
    office: Office, notes: NoteServer
) -> None:
    window = await office.ann.window("lantern plan", 500, collection="team")
    assert window.answer is not None
    assert (await office.ben.answers.get(window.answer)).text == window.text
    notes.share("plan", {"ann"})
    assert [record.id for record in (await office.ann.answers.list()).answers] == [window.answer]
    assert (await office.ben.answers.list()).answers == ()
    with pytest.raises(NotFound):
        await office.ben.answers.get(window.answer)


async def test_feedback_is_listed_while_its_document_may_be_opened(office: Office, notes: NoteServer) -> None:
    window = await office.ann.window("lantern plan", 500, collection="team")
    numbers = [citation.number for citation in window.citations]
    await office.ann.search.feedback(window, used=numbers)
    judged = await office.ben.search.list_feedback(collection="team")
    notes.share("plan", {"ann"})
    left = await office.ben.search.list_feedback(collection="team")
    assert len(judged.feedback) == 2
    assert len(left.feedback) == 1


async def test_a_chat_is_given_only_what_may_be_opened(tmp_path: Path, notes: NoteServer) -> None:
    prompts: list[str] = []

    def answer(messages: object) -> list[str]:
        prompts.append(repr(messages))
        return ["It is there [1]."]

    model = ScriptedChatModel(answer)
    async with conspectus.open(tmp_path / "store", settings=SETTINGS, chat_model=model) as owner:
        office = await open_office(owner)
        for viewers in ({"ann"}, {"ben"}):
            notes.share("plan", viewers)
            request = ChatRequest("lantern plan", collection="team")
            events = [event async for event in office.ann.chat.stream(request)]
            assert not any(isinstance(event, Failure) for event in events)
    assert ["Ann Shepherd" in prompt for prompt in prompts] == [True, False]


async def test_see_as_asks_for_both(office: Office, notes: NoteServer) -> None:
    notes.share("plan", {"ben"})
    notes.questions.clear()
    explanation = await office.ann.search.explain_as("lantern", 500, user="ben", collection="team")
    assert "Ann Shepherd" not in repr(explanation)
    assert {("ann", "plan"), ("ben", "plan")} <= set(notes.questions)


async def test_see_as_says_what_the_remote_refuses(office: Office, notes: NoteServer) -> None:
    notice = "the remote does not let ben open 1 document of your candidates now"
    for viewers, is_refused in (({"ann", "ben"}, False), ({"ann"}, True)):
        notes.share("plan", viewers)
        explanation = await office.ann.search.explain_as("lantern", 500, user="ben", collection="team")
        assert (notice in explanation.window.notices) == is_refused
        assert ("Ann Shepherd" in explanation.window.text) != is_refused


async def test_a_person_without_a_name_at_the_remote_reads_nothing(office: Office, notes: NoteServer) -> None:
    await office.owner.connections.map_person("office", "ann", collection="team")
    assert await find(office.ann) == set()


async def test_a_connector_that_cannot_verify_is_refused(office: Office) -> None:
    with pytest.raises(InvalidInput, match="'verify' is not an option"):
        await office.owner.connections.create(
            "other",
            "guarded",
            {"server": "office", "verify": True},
            credentials={"password": PASSWORD},
            collection="team",
        )


@pytest.mark.parametrize(
    ("name", "number"),
    [("verify_max_documents", 0), ("verify_timeout_seconds", 0), ("verify_cache_seconds", -1)],
)
def test_limits_of_the_settings(name: str, number: float) -> None:
    with pytest.raises(InvalidInput, match=name):
        replace(SETTINGS, **{name: number})
