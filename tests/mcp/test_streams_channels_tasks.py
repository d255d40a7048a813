"""Tools that ask streams, channels and tasks."""

from conspectus.engine import Engine
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.memory import Scope
from conspectus.model.tasks import Task
from tests.mcp.conftest import answer_text, client, refused, remember_texts


async def test_moments_have_their_stream_their_times_and_their_captions(engine: Engine) -> None:
    scenes = [NewCaption("A red car stops at the gate.", 65, 70), NewCaption("A dog sleeps.", 300, 310)]
    await engine.streams.add_captions(scenes, stream="gate")
    await engine.documents.wait_until_embedded()
    async with client(engine) as session:
        answer = await answer_text(session, "search_streams", query="red car", streams=["gate"], limit=1)
        assert answer.startswith("gate, 00:01:05 to 00:01:10 (score ")
        assert answer.endswith("\nA red car stops at the gate.")
        later = await answer_text(session, "search_streams", query="red car", start="0:02:00", end="0:03:00")
        assert "car" not in later
        assert (await refused(session, "search_streams", query="x", streams=["yard"])).startswith("not_found")


async def test_the_context_of_a_channel_is_of_its_messages(engine: Engine) -> None:
    talk = [NewMessage("How do I reset it?", key="1"), NewMessage("Hold the button.", key="2", reply_to="1")]
    await engine.channels.add_messages(talk, channel="support")
    await engine.documents.wait_until_embedded()
    async with client(engine) as session:
        answer = await answer_text(session, "channel_context", query="How do I reset it?", channel="support")
        assert "How do I reset it?" in answer and "document " in answer
        assert (await refused(session, "channel_context", query="x", channel="sales")).startswith("not_found")


async def test_a_channel_is_never_the_memory_of_somebody_else(engine: Engine) -> None:
    async with client(engine) as session:
        await remember_texts(session, "Bob likes green tea.", user="bob")
    [home] = await engine.collections.list_sources(collection="memory")
    async with client(engine, Scope("ann")) as session:
        fields = {"query": "tea", "collection": "memory"}
        assert (await refused(session, "channel_context", channel=home.id, **fields)).startswith("not_found")
        assert (await refused(session, "search_streams", streams=[home.id], **fields)).startswith("not_found")


async def test_tasks_are_found_by_what_they_are_about(engine: Engine) -> None:
    tasks = engine.tasks
    await tasks.put(Task("login", "Fix the login", "Passwords fail.", status="in_progress", priority="high"))
    await tasks.put(Task("docs", "Write the docs"))
    async with client(engine) as session:
        answer = await answer_text(session, "search_tasks", query="login passwords", status="in_progress")
        assert answer.startswith("task login: Fix the login (in_progress, high)\n")
        assert "docs" not in answer
        assert (
            await answer_text(session, "search_tasks", query="x", collection="default")
            == "Nothing relevant was found."
        )
