"""Secrets and personal data are found in any text, and refused, masked or tagged before it is stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.tasks import TaskService
from conspectus.errors import InvalidInput
from conspectus.ingest.sensitive import screen_of, screens
from conspectus.ingest.sensitive_spans import find_sensitive
from conspectus.model.access import Person, Principal
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.filter import Eq
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.records import NewDocument, TextPosition
from conspectus.model.sensitive_reports import CATEGORIES
from conspectus.model.tasks import Attachment, Task
from conspectus.text.hashing import stable_id

TOKEN = "ghp_" + "bA16J7PglOU3shVv5UTG79BG16QmtsL4F28G"
CARD, ACCOUNT = "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"
EMAIL, PHONE = "ann.ö@example.com", "+49 30 901820"
EVERYTHING = f"Grüße 🎉 {TOKEN}; {CARD}, {ACCOUNT}, {EMAIL} or {PHONE}."


def find_texts(text: str, *categories: str) -> list[tuple[str, str]]:
    """The categories with the texts."""
    return [
        (finding.category, text[finding.start : finding.end])
        for finding in find_sensitive(text, categories or CATEGORIES)
    ]


def test_each_category_is_found_where_it_stands() -> None:
    expected = [
        ("secrets", TOKEN),
        ("cards", CARD),
        ("accounts", ACCOUNT),
        ("emails", EMAIL),
        ("phones", PHONE),
    ]
    assert find_texts(EVERYTHING) == expected
    assert find_sensitive(EVERYTHING)[0].name == "secret: github pat"
    assert find_sensitive("") == []


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112", "1234567890123456", "41111111111111111111111", "DE89 3704 0044 0532 0130 01",
        "ann@localhost", "@ann", "a@b", "+1 2", "2026-11-26 22:37:43.123456", "1764196663123456",
        "5d41402abc4b2a76b9719d911017c592", "version 1.2.3+4567890123",
    ],
)  # fmt: skip
def test_what_only_looks_like_it_is_not_found(text: str) -> None:
    assert find_texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        *("1 " * 100_000, "4" * 200_000, "a@a." * 50_000, "+4" * 60_000, "AB12 " * 40_000),
        *("\ud800ghp_" * 20_000, "@" * 200_000),
    ],
    ids=["digits", "one number", "addresses", "phones", "accounts", "surrogates", "signs"],
)  # fmt: skip
def test_huge_and_hostile_texts_are_read(text: str) -> None:
    assert all(0 <= finding.start < finding.end <= len(text) for finding in find_sensitive(text))


def test_overlapping_findings_are_one() -> None:
    text = f"x {ACCOUNT} 4111 1111 1111 1111 {TOKEN}@example.com"
    spans = find_sensitive(text)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert spans[-1].category == "secrets"
    assert spans[-1].end == len(text)


def test_settings_name_categories_and_collections() -> None:
    home, other = (stable_id("collection", name) for name in ("team/notes", "other"))
    setting = "secrets=mask, team/notes:secrets=off, team/notes:emails=tag"
    assert dict(screen_of(setting, home).actions) == {"emails": "tag"}
    assert dict(screen_of(setting, other).actions) == {"secrets": "mask"}
    assert screen_of("", home) is None
    assert screen_of("secrets=off", home) is None
    for wrong in ("secrets", "secrets=delete", "names=mask", "=", "notes:=mask"):
        with pytest.raises(InvalidInput):
            screens(wrong)


@asynccontextmanager
async def open_engine(path: Path, sensitive: str) -> AsyncIterator[Engine]:
    """An engine with rules for secrets and personal data."""
    settings = Settings(embedder="none", sensitive=sensitive, log_level="critical")
    async with conspectus.open(path, settings=settings) as engine:
        yield engine


async def test_a_wrong_setting_is_an_error_when_the_store_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        async with open_engine(tmp_path, "secrets=delete"):
            pass


async def test_what_is_refused_is_named_but_not_repeated(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "secrets=refuse, free:secrets=off") as engine:
        for new in (
            NewDocument(f"a {TOKEN}"),
            NewDocument("a", f"a {TOKEN}"),
            NewDocument("a", metadata={"x": [{"y": f"a {TOKEN}"}]}),
            NewDocument("a", author=f"a {TOKEN}"),
            NewDocument("a", key=f"a {TOKEN}"),
        ):
            with pytest.raises(InvalidInput, match=r"characters 2 to 42 .*github pat") as caught:
                await engine.add(["fine", new])
            assert TOKEN not in "".join([str(caught.value), *caught.value.__notes__])
        assert await engine.documents.count() == 0
        for node in (NewNode("n", name=TOKEN), NewNode(TOKEN), NewNode("n", properties={"a": [TOKEN]})):
            with pytest.raises(InvalidInput, match="github pat"):
                await engine.graph.add_nodes([node])
        await engine.add(f"a {TOKEN}", collection="free")


async def test_tasks_whose_ids_are_addresses_are_found_by_them(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "emails=mask, phones=mask") as engine:
        tasks, file = TaskService(engine), Attachment(f"%2F {PHONE}", text="minutes")
        await tasks.put_many([Task(id=EMAIL, title="call"), Task(id=f"a/{EMAIL}", title="write")])
        await tasks.attach(EMAIL, file)
        assert {task.id for task in (await tasks.list()).tasks} == {EMAIL, f"a/{EMAIL}"}
        await tasks.update(EMAIL, status="completed")
        assert (await tasks.get(EMAIL)).status == "completed"
        (stored,) = await tasks.attachments(EMAIL)
        assert (stored.id, stored.task_id) == (file.id, EMAIL)


async def test_masks_are_stored_everywhere_and_positions_follow(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ",".join(f"{category}=mask" for category in CATEGORIES)) as engine:
        text = f"{EVERYTHING} End."
        places = (TextPosition(0, 1), TextPosition(text.index("End"), 2))
        (done,) = await engine.add(
            NewDocument(text, EMAIL, places=places, metadata={"by": [PHONE]}, author=EMAIL)
        )
        await engine.graph.add_nodes([NewNode("n", name=f"a {EMAIL}", aliases=(f"b {EMAIL}",))])
        node = await engine.graph.get_node("n")
        assert (node.name, node.aliases) == ("a [email]", ("b [email]",))
        await engine.channels.add_messages([NewMessage(f"call {PHONE}", "ann")], channel="c")
        await engine.streams.add_captions([NewCaption(f"card {CARD}", 0, 1)], stream="s")
        await engine.memory.add(f"Mail {EMAIL}.", scope=Scope("ann"))
        masked = "Grüße 🎉 [secret: github pat]; [card], [account], [email] or [phone]. End."
        stored = await engine.documents.get(done.id)
        assert (await engine.documents.get_text(done.id), stored.title, stored.metadata) == (
            masked,
            "[email]",
            {"by": ["[phone]"]},
        )
        assert stored.author == "[email]"
        (hit,) = (await engine.retrieve("End")).hits
        assert hit.chunk.page == 1
        for masked_text in ("call [phone]", "card [card]", "Mail [email]."):
            assert (await engine.files.grep(masked_text, literal=True)).matches == 1
        await engine.documents.update(done.id, text=f"now {EMAIL}")
        assert await engine.documents.get_text(done.id) == "now [email]"
    stored_bytes = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"call [phone]" in file_bytes for file_bytes in stored_bytes)
    assert not any(TOKEN.encode() in file_bytes for file_bytes in stored_bytes)


async def test_thread_and_role_are_masked_and_threads_stay_apart(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "emails=mask") as engine:
        texts = [
            NewMessage("the tide is high", thread=EMAIL, role=f"bot {EMAIL}", key="1"),
            NewMessage("the moon is full", thread=EMAIL, key="2"),
            NewMessage("the wind is weak", thread=f"b{EMAIL}", key="3"),
        ]
        written = await engine.channels.add_messages(texts, channel="c", link=False)
        one, two, three = [await engine.documents.get(message.id) for message in written]
        assert one.role == "bot [email]"
        assert one.thread == two.thread != three.thread
        assert one.thread.startswith("[email ") and len(one.thread) == len("[email ") + 7
        window = await engine.channels.window("tide", 500, channel="c", thread=EMAIL)
        assert {one.id, two.id} <= {message.id for message in window.messages}
        await engine.channels.add_messages([NewMessage("so it is", thread=EMAIL, key="4")], channel="c")
        assert (await engine.documents.get_by_key("4", source="c")).thread == one.thread


async def test_facts_are_nodes_without_what_is_masked(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "emails=mask") as engine:
        facts = [Fact("Ann", "has address", address, single=True) for address in (EMAIL, f"b{EMAIL}")]
        memories = [NewMemory(f"Mail {fact.object}.", key=fact.object[0], fact=fact) for fact in facts]
        await engine.memory.add(memories, scope=Scope("ann"))
        collection = "memory"
        graphs = await engine.graph.list(collection=collection)
        graph = graphs[0].source.name
        nodes = (await engine.graph.list_nodes(graph=graph, collection=collection)).nodes
        assert len(nodes) == 3
        assert sum(node.id.startswith("[email ") for node in nodes) == 2
        first, second = (await engine.graph.list_edges(graph=graph, collection=collection)).edges
        assert (first.closed_by, second.closed_by) == (second.id, None)
        stored = (await engine.memory.list(scope=Scope("ann"))).memories[0]
        await engine.memory.update(stored.id, scope=Scope("ann"), fact=None)
        exported = await engine.memory.export(scope=Scope("ann"))
        assert "[email" in exported.lines[0]
        await engine.graph.add_nodes([NewNode(EMAIL, type=EMAIL), NewNode("b")])
        await engine.graph.add_edges([NewEdge("b", EMAIL, f"knows {EMAIL}")])
        (edge,) = (await engine.graph.list_edges()).edges
        assert edge.type == "knows [email]" and edge.target.startswith("[email ")
        await engine.graph.merge_nodes("b", [edge.target], reason=f"both are {EMAIL}")
        (merge,) = await engine.graph.list_merges()
        await engine.graph.undo_merge(merge.number, reason=f"{EMAIL} is another")
        reasons = [event.reason for event in await engine.graph.list_merges()]
        assert reasons == ["both are [email]", "[email] is another"]
    assert no_file_has(tmp_path, EMAIL)


def no_file_has(folder: Path, text: str) -> bool:
    """Whether no file has a text, in any case."""
    contents = [path.read_bytes().lower() for path in folder.rglob("*") if path.is_file()]
    return not any(text.lower().encode() in content for content in contents)


async def test_names_are_refused_where_they_cannot_be_masked(tmp_path: Path) -> None:
    async with open_engine(tmp_path, f"secrets={'mask'}, emails=mask") as engine:
        for create in (
            lambda: engine.collections.create(f"a {EMAIL}"),
            lambda: engine.collections.get_or_create_source(f"a {EMAIL}"),
            lambda: engine.add("a", source=f"a {EMAIL}"),
            lambda: engine.people.create_user(f"a {TOKEN}"),
            lambda: engine.memory.add("a", scope=Scope(f"a {TOKEN}")),
            lambda: engine.add(NewDocument("a", key=f"a {TOKEN}")),
        ):
            with pytest.raises(InvalidInput, match="a name cannot be masked") as caught:
                await create()
            assert TOKEN not in str(caught.value) and EMAIL not in str(caught.value)
        await engine.people.create_user(EMAIL)
        await engine.memory.add("a", scope=Scope(EMAIL))
        source = await engine.collections.get_or_create_source("s", metadata={EMAIL: f"of {EMAIL}"})
        assert source.metadata == {"[email]": "of [email]"}
        await engine.collections.create("c", description=f"of {EMAIL}")
        await engine.collections.update("c", description=f"now of {EMAIL}")
        assert (await engine.collections.get("c")).description == "now of [email]"
        key = await engine.keys.create(label=f"for {EMAIL}")
        assert key.key.label == "for [email]"


@pytest.mark.parametrize("action", ["mask", "refuse"])
async def test_a_page_that_is_refused_is_not_named(tmp_path: Path, action: str) -> None:
    folder, data = tmp_path / "folder", tmp_path / "data"
    folder.mkdir()
    (folder / f"{TOKEN}.md").write_text("the tide is high")
    (folder / "moon.md").write_text("the moon is full")
    async with open_engine(data, f"secrets={action}") as engine:
        await engine.connections.create("notes", "markdown", {"path": str(folder)})
        job = await engine.jobs.wait((await engine.connections.sync("notes")).id)
        assert job.result is not None and len(job.result["failures"]) == 1, job
        assert job.result["failures"][0]["name"].startswith("[secret: github pat] (")
        assert await engine.documents.count() == 1
        job = await engine.jobs.wait((await engine.connections.sync("notes")).id)
        assert TOKEN not in f"{job.error} {job.result}"
    assert no_file_has(data, TOKEN)


async def test_chunks_given_by_the_caller_follow_the_mask(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "cards=mask") as engine:
        text = f"ab {CARD} cd"
        cut = text.index(CARD) + 5
        (done,) = await engine.add(NewDocument(text, spans=((0, cut), (cut, cut + 3), (cut + 3, len(text)))))
        assert [chunk.text for chunk in await engine.documents.list_chunks(done.id)] == ["ab ", "[card] cd"]


async def test_tags_can_be_filtered(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "emails=tag,phones=tag") as engine:
        await engine.add([NewDocument(EVERYTHING, metadata={"sensitive": ["own"]}), NewDocument("nothing")])
        (tagged,) = (await engine.documents.list(filter=Eq(("sensitive",), "emails"))).documents
        assert tagged.metadata["sensitive"] == ["emails", "own", "phones"]
        (keyed,) = await engine.add(NewDocument("a", key=EMAIL))
        assert (await engine.documents.get(keyed.id)).metadata["sensitive"] == ["emails"]
        assert await engine.documents.get_text(tagged.id) == EVERYTHING


async def test_a_scan_counts_what_is_stored(tmp_path: Path) -> None:
    """It says where, and repeats nothing."""
    async with open_engine(tmp_path, "") as engine:
        await engine.add([NewDocument(EVERYTHING, "one"), f"{EMAIL} {EMAIL}", *map(str, range(300))])
        report = await engine.maintenance.scan()
        assert (report.scanned, report.found["emails"], report.documents["emails"]) == (302, 3, 2)
        assert dict(report.documents) == {**dict.fromkeys(CATEGORIES, 1), "emails": 2}
        (secret,) = (finding for finding in report.places if finding.category == "secrets")
        assert (secret.title, secret.kind) == ("one", "github pat")
        assert EVERYTHING[secret.start : secret.end] == TOKEN
        assert (len(report.places), len((await engine.maintenance.scan(limit=2)).places)) == (7, 2)
        assert TOKEN not in str(report)
        assert dict((await engine.maintenance.scan(categories=["cards"])).found) == {"cards": 1}


async def test_a_scan_reads_nodes_of_readable_graphs_only(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "") as engine:
        for graph in ("open", "closed"):
            await engine.graph.add_nodes([NewNode("n", name=f"a {EMAIL}")], graph=graph)
        await engine.collections.update("default", description=f"of {EMAIL}")
        await engine.keys.create_first()
        user = await engine.people.create_user("bob")
        source = await engine.graph.get_or_create("open")
        await engine.access.grant("default", Principal("user", user.id), "viewer", source=source.id)
        reader = engine.as_person(Person("bob", owner=False, id=user.id))
        columns = [finding.column for finding in (await reader.maintenance.scan()).places]
        assert columns == ["graph_nodes.name"]
        columns = [finding.column for finding in (await engine.maintenance.scan()).places]
        assert sorted(columns) == ["collections.description", "graph_nodes.name", "graph_nodes.name"]
