"""A result never costs more than was allowed, whatever texts hold and however it is counted."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult

from conspectus.bootstrap import local_counter
from conspectus.engine import Engine
from conspectus.mcp.document_tools import document_part
from conspectus.mcp.token_budget import CUT_MARK, MIN_TOKENS, ResultPage, ToolBudget, fill_page
from conspectus.model.records import NewDocument
from tests.mcp.conftest import answer_data, call_tool, client, text_of
from tests.repetitions import tries

COUNT = local_counter("o200k_base")
TEXTS = st.text(max_size=60).flatmap(lambda text: st.integers(0, 40).map(lambda times: text * times))
BUDGETS = st.integers(MIN_TOKENS, 700)
HARD = [
    "👩‍👩‍👧‍👦" * 400,
    "Ж̵̨͙" * 500,
    "\x00\ud800" * 300,
    " " * 9_000,
    "a" * 30_000,
    "日本語" * 900,
    "\n[1] x" * 900,
]


@settings(max_examples=tries(60), deadline=None)
@given(st.lists(TEXTS, max_size=8), TEXTS, TEXTS, BUDGETS, st.booleans())
@example(HARD, "", "", MIN_TOKENS, False)
@example(list(reversed(HARD)), HARD[0], HARD[3], MIN_TOKENS, True)
def test_a_page_is_never_over(items: list[str], head: str, foot: str, tokens: int, upwards: bool) -> None:
    page = ResultPage(items, head, foot, upwards=upwards)
    text, count = fill_page(page, ToolBudget(tokens, COUNT))
    assert COUNT(text) <= tokens
    assert 0 <= count <= len(items)
    if count == len(items) and CUT_MARK not in text:
        assert text == page.render(items)


@settings(max_examples=tries(60), deadline=None)
@given(TEXTS, st.integers(1, 300))
def test_what_is_cut_is_a_beginning(text: str, tokens: int) -> None:
    cut = ToolBudget(tokens, COUNT).cut(text)
    assert cut == text or text.startswith(cut.removesuffix(CUT_MARK))
    assert COUNT(cut) <= max(tokens, COUNT(CUT_MARK))


@settings(max_examples=tries(40), deadline=None)
@given(st.one_of(TEXTS, st.sampled_from(HARD)), TEXTS, BUDGETS)
def test_pieces_of_a_document_come_to_an_end(text: str, title: str, tokens: int) -> None:
    start, turns = 0, 0
    while start < len(text):
        part = document_part(title, text, start, ToolBudget(tokens, COUNT))
        assert COUNT(part) <= tokens
        if "start=" not in part[-40:]:
            break
        following = int(part.rpartition("start=")[2].rstrip("]"))
        assert following > start
        start, turns = following, turns + 1
    assert turns <= len(text)


def test_as_much_as_fits_is_shown() -> None:
    items = [f"Item {number} says something." for number in range(200)]
    text, count = fill_page(ResultPage(items), ToolBudget(500, COUNT))
    assert 430 < COUNT(text) <= 500
    assert text.endswith(f"[{200 - count} more left out: raise max_tokens, or ask for less]")


def cost(result: CallToolResult) -> int:
    """What all of it costs, as the documents say."""
    assert result.structured_content is None
    return COUNT(text_of(result))


@pytest.mark.parametrize(
    "tokens", [MIN_TOKENS, *(pytest.param(tokens, marks=pytest.mark.slow) for tokens in (257, 1_000)), 8_000]
)
async def test_no_tool_is_over_on_texts_that_are_hard_to_cut(engine: Engine, tokens: int) -> None:
    documents = [NewDocument(f"ferry {text}", title=f"ferry {text[:900]}") for text in HARD[:2] + HARD[4:]]
    written = await engine.add(documents, wait=True)
    async with client(engine) as session:
        scope = {"user": "ann"}
        memories = [{"text": f"ferry {text}"[:90_000], "speaker": text[:90]} for text in HARD[:2] + HARD[4:]]
        facts = [{"subject": "ferry", "predicate": "p", "object": f"ferry{text[:90]}"} for text in HARD[4:]]
        calls: list[tuple[str, dict[str, Any]]] = [("remember", {"memories": memories * 5, **scope})]
        calls += [("add_facts", {"facts": facts})]
        calls += [(name, {"query": "ferry"}) for name in ("search", "context", "explain", "graph")]
        calls += [("recall", {"query": "ferry", "window": window, **scope}) for window in (False, True)]
        calls += [("history", scope), ("graph", {"node": "ferry"}), ("list_collections", {})]
        calls += [("list_documents", {"collection": "default"}), ("list_nodes", {"graph": "default"})]
        calls += [("read_document", {"document": document.id}) for document in written]
        calls += [("forget", {"everything": True, "confirm": True, **scope})]
        for name, arguments in calls:
            result = await call_tool(session, name, {**arguments, "max_tokens": tokens})
            assert not result.is_error, (name, text_of(result))
            assert 0 < cost(result) <= tokens, name


async def test_a_receipt_that_is_cut_says_how_much_was_done(engine: Engine) -> None:
    async with client(engine) as session:
        memories = [{"text": f"Memory {number}."} for number in range(50)]
        done = await answer_data(session, "remember", memories=memories, max_tokens=300)
        assert done["stored"] == 50
        assert 0 < len(done["memories"]) == 50 - done["left_out"] < 50


async def test_another_tokenizer_counts(engine: Engine) -> None:
    await engine.add([NewDocument("ferry " * 3_000)], wait=True)
    async with client(engine, maximum=1_000) as session:
        result = await session.call_tool("search", {"query": "ferry"})
        assert 800 < cost(result) <= 1_000
