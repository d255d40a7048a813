"""What every engine must do with exports of documents, messages and tasks."""

import json
from datetime import UTC, datetime

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.channels import NewMessage
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument, Period, TextPosition
from conspectus.model.tasks import Attachment, Task
from tests.support.engine_samples import AnyEngine

SPAN = Period(datetime(2026, 3, 2, 8, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC))
DOCUMENTS = [
    NewDocument("# Backups\n\nThe backup runs at two.\n\n## Köln\n\nNot here.", "Backups", key="backup.md",
                syntax="markdown", metadata={"team": "ops", "tags": ["a", "b"]}, author="Ann"),
    NewDocument("First page. Second page.", key="two.pdf", occurred=SPAN,
                places=(TextPosition(0, 1), TextPosition(12, 2, ("End",)))),
    NewDocument("One piece. Another piece.", key="cut.txt", spans=((0, 11), (11, 25))),
    NewDocument("Bare text without a key."),
    NewDocument("From a page of the web.", key="web", origin="web", trust="untrusted", sequence=7),
    NewDocument("", key="empty"),
]  # fmt: skip


async def fill(engine: AnyEngine) -> None:
    """Store documents of every kind that an export has."""
    await engine.documents.add(DOCUMENTS, source="handbook")
    page = await engine.documents.get_by_key("backup.md", source="handbook")
    await engine.documents.add(NewDocument("A note on it.", key="note", parent=page.id), source="handbook")
    messages = [
        NewMessage("Is the backup done?", author="Mia", key="1", at="2026-03-02T08:00:00Z"),
        NewMessage("Yes, at two.", author="Ann", key="2", at="2026-03-02T08:01:00Z", reply_to="1"),
        NewMessage("Good.", author="Mia", key="3", at="2026-03-02T08:02:00Z", thread="1"),
    ]
    await engine.channels.add_messages(messages, channel="operations")
    tasks = engine.tasks.using(collection="default")
    await tasks.put(
        Task("restore", "Restore", "Copy the folder back.", ("ops",), priority="high"), wait=False
    )
    await tasks.attach("restore", Attachment("log", "It took an hour.", "Log"), wait=False)


async def export_lines(engine: AnyEngine, collection: str = "default", limit: int | None = 3) -> list[str]:
    lines: list[str] = []
    after = None
    while True:
        page = await engine.documents.export(collection=collection, after=after, limit=limit)
        lines += page.lines
        after = page.next
        if after is None:
            return lines


class ExportContract:
    """Documents, messages and tasks as lines, and back."""

    async def test_an_export_imported_again_is_unchanged(self, engine: AnyEngine) -> None:
        await fill(engine)
        lines = await export_lines(engine)
        assert len(lines) == len(DOCUMENTS) + 1 + 3 + 2
        written = await engine.documents.import_lines(lines)
        assert {document.outcome for document in written} == {"unchanged"}
        assert await export_lines(engine, limit=None) == lines

    async def test_an_export_makes_the_same_in_another_collection(self, engine: AnyEngine) -> None:
        await fill(engine)
        lines = await export_lines(engine)
        written = await engine.documents.import_lines("\n".join(lines), collection="copy")
        assert {document.outcome for document in written} == {"added"}
        assert sorted(await export_lines(engine, "copy")) == sorted(lines)
        note = await engine.documents.get_by_key("note", source="handbook", collection="copy")
        page = await engine.documents.get_by_key("backup.md", source="handbook", collection="copy")
        assert note.parent == page.id
        chunks = []
        for collection in ("default", "copy"):
            pdf = await engine.documents.get_by_key("two.pdf", source="handbook", collection=collection)
            rows = await engine.documents.list_chunks(pdf.id)
            chunks.append([(chunk.text, chunk.page, chunk.heading) for chunk in rows])
        assert chunks[0] == chunks[1]
        messages = await engine.channels.list_messages(channel="operations", collection="copy")
        assert [message.document.thread for message in messages] == ["1", "1", "1"]
        task = await engine.tasks.using(collection="copy").get("restore")
        assert (task.title, task.priority, task.has_attachments) == ("Restore", "high", True)
        again = await engine.documents.import_lines(lines, collection="copy")
        assert {document.outcome for document in again} == {"unchanged"}

    async def test_a_child_may_come_before_its_parent(self, engine: AnyEngine) -> None:
        child = '{"source": "s", "key": "child", "text": "A note.", "parent": "page"}'
        other = '{"source": "t", "key": "other", "text": "Another source."}'
        page = '{"source": "s", "key": "page", "text": "A page."}'
        written = await engine.documents.import_lines([child, other, page])
        stored = [await engine.documents.get(document.id) for document in written]
        assert [document.key for document in stored] == ["child", "other", "page"]
        assert stored[0].parent == stored[2].id

    async def test_a_filter_selects_and_what_has_its_own_export_is_counted(self, engine: AnyEngine) -> None:
        await fill(engine)
        await engine.memory.add("Prefers tea.", user="ann", collection="default")
        messages = await engine.documents.export(filter=Eq("kind", "message"))
        assert [json.loads(line)["source_kind"] for line in messages.lines] == ["channel"] * 3
        assert (await engine.documents.export()).left_out == {"memories": 1}

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("{", "is not JSON"),
            ("[1]", "is not an object"),
            ('{"key": "a", "text": "b"}', "source must be a string"),
            ('{"source": "s", "key": "a", "text": "b", "colour": 1}', "colour is not a field"),
            ('{"source": "s", "key": "a", "text": "b", "kind": "memory"}', "kind must be one of"),
            ('{"source": "s", "key": "a", "text": "b", "occurred": "never"}', "occurred"),
            ('{"source": "s", "key": "a", "text": "b", "spans": 1}', "int"),
            ('{"source": "s", "key": "a", "text": "b", "places": [{"page": 1}]}', "start"),
        ],
    )
    async def test_a_wrong_line_is_named(self, engine: AnyEngine, line: str, reason: str) -> None:
        good = '{"source": "s", "key": "good", "text": "Fine."}'
        with pytest.raises(InvalidInput, match=r"^line 2: ") as caught:
            await engine.documents.import_lines([good, line])
        assert reason in str(caught.value)
