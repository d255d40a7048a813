"""Tools of memory, with the official client in memory."""

from pathlib import Path
from typing import Any

import pytest

from conspectus import bootstrap
from conspectus.engine import Engine
from tests.mcp.conftest import SETTINGS, answer_data, answer_text, client, refused, remember_texts

ANN = {"user": "ann", "agent": "helper", "conversation": "c1"}


async def test_what_is_remembered_is_recalled_at_once(tmp_path: Path) -> None:
    # With vectors, the note would be found as soon as its vector is stored.
    async with bootstrap.open(tmp_path, settings=SETTINGS) as engine, client(engine) as session:
        fact = {"subject": "Ann", "predicate": "lives_in", "object": "Bern"}
        home = {
            "text": "I moved to Bern.",
            "role": "user",
            "speaker": "Ann",
            "at": "2026-01-02",
            "fact": fact,
        }
        note = {"text": "Answer in French.", "kind": "note", "pinned": True}
        stored = await answer_data(session, "remember", memories=[home, note], **ANN)
        assert [memory["outcome"] for memory in stored["memories"]] == ["added", "added"]
        answer = await answer_text(session, "recall", query="where does Ann live, in Bern?", user="ann")
        assert f"[{stored['memories'][0]['id']}] 2026-01-02 00:00 user Ann" in answer
        assert "I moved to Bern." in answer
        window = await answer_text(
            session, "recall", window=True, query="where is home?", max_tokens=300, **ANN
        )
        assert "I moved to Bern." in window and "Answer in French." not in window
        asking = await answer_text(session, "recall", window=True, query="French?", max_tokens=300, **ANN)
        assert "Answer in French." in asking


async def test_before_anything_is_remembered_there_is_nothing(engine: Engine) -> None:
    async with client(engine) as session:
        for window in (False, True):
            assert (
                await answer_text(session, "recall", window=window, query="tea", **ANN)
                == "No relevant memory was found."
            )
        assert await answer_text(session, "history", **ANN) == "No memories."
        receipt = await answer_data(session, "forget", everything=True, confirm=True, **ANN)
        assert (receipt["memories"], receipt["dry_run"]) == (0, False)


async def test_a_memory_is_changed_and_what_it_was_is_known(engine: Engine) -> None:
    async with client(engine) as session:
        (memory,) = await remember_texts(session, "The door code is 4711.", **ANN)
        before = (await engine.documents.get(memory)).updated.isoformat()
        changed = await answer_data(
            session, "update_memory", memory=memory, text="The door code is 1234.", **ANN
        )
        assert changed["id"] == memory
        assert "1234" in await answer_text(session, "recall", query="door code", **ANN)
        earlier = await answer_text(session, "recall", query="door code", as_of=before, **ANN)
        assert "4711" in earlier and "1234" not in earlier and "Since then: " in earlier
        assert (await refused(session, "update_memory", memory=memory, **ANN)).startswith("invalid_input")
        assert (await refused(session, "update_memory", memory="x", text="y", **ANN)).startswith("not_found")


async def test_the_same_key_again_replaces(engine: Engine) -> None:
    async with client(engine) as session:
        for text, outcome in (("One.", "added"), ("Two.", "replaced"), ("Two.", "unchanged")):
            stored = await answer_data(session, "remember", memories=[{"text": text, "key": "k"}], **ANN)
            assert stored["memories"][0]["outcome"] in {outcome, "updated"}
        assert "One." not in await answer_text(session, "history", **ANN)


async def test_nothing_is_forgotten_without_confirmation(engine: Engine) -> None:
    async with client(engine) as session:
        first, second = await remember_texts(session, "Red.", "Blue.", **ANN)
        preview = await answer_data(session, "forget", ids=[first, "unknown"], **ANN)
        assert (preview["dry_run"], preview["memories"], preview["ids"]) == (True, 1, [first])
        assert "confirm=true" in preview["next"]
        assert "Red." in await answer_text(session, "history", **ANN)
        receipt = await answer_data(session, "forget", ids=[first], confirm=True, **ANN)
        assert (receipt["dry_run"], receipt["memories"]) == (False, 1)
        left = await answer_text(session, "history", **ANN)
        assert "Red." not in left and second in left
        assert (await answer_data(session, "forget", ids=[first], confirm=True, **ANN))["memories"] == 0


@pytest.mark.parametrize(
    "what", [{}, {"ids": ["x"], "everything": True}, {"before": "2026-01-01", "ids": ["x"]}]
)
async def test_what_to_forget_is_said_in_one_way(engine: Engine, what: dict[str, Any]) -> None:
    async with client(engine) as session:
        await remember_texts(session, "Red.", **ANN)
        assert (await refused(session, "forget", confirm=True, **what, **ANN)).startswith("invalid_input")
        assert "Red." in await answer_text(session, "history", **ANN)


async def test_history_is_read_backwards_page_by_page_without_a_gap(engine: Engine) -> None:
    texts = [f"Turn {number} of a long talk about tides and ferries and weather." for number in range(40)]
    seen: list[str] = []
    async with client(engine) as session:
        await remember_texts(session, *texts, **ANN)
        cursor: dict[str, str] = {}
        while True:
            page = await answer_text(session, "history", limit=30, max_tokens=500, **cursor, **ANN)
            assert engine.tokenizer()(page) <= 500
            seen = [line.partition(": ")[2] for line in page.splitlines() if "Turn" in line] + seen
            head = page.splitlines()[0]
            if not head.startswith("[older: history with cursor="):
                break
            cursor = {"cursor": head.partition("cursor=")[2].rstrip("]")}
    assert seen == texts


async def test_a_memory_that_is_too_long_is_cut_and_can_be_read(engine: Engine) -> None:
    long = "The tide table of every harbour. " * 2_000
    async with client(engine) as session:
        (memory,) = await remember_texts(session, long, **ANN)
        for tool, more in (("recall", {"query": "tide table"}), ("history", {})):
            answer = await answer_text(session, tool, max_tokens=300, **more, **ANN)
            assert memory in answer and "[…]" in answer
        assert "The tide table" in await answer_text(session, "read_document", document=memory)
