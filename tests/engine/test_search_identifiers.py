"""A rare identifier ranks its only document before those with its parts or one other character."""

import re
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus import Engine, Eq, NewDocument, Not, Settings
from conspectus.model.query import EVERYWHERE
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder

IDENTIFIERS = (
    "zqjhhtkmcrnrmxc3q13", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8", "3f9a1c7", "E1013", "ORA-01555",
    "550e8400-e29b-41d4-a716-446655440013", "v4.13.2-rc.1", "2.7.18", "CVE-2024-3094", "10.13.200.7",
    "2001:db8::ff00:42:8329", "00:1B:44:11:3A:B7", "max_retry_backoff_seconds", "MAX_CONN_13", "__exit__",
    "getPendingInvoiceTotal", "com.acme.billing.InvoiceService", "std::vector", "+49-30-901820-13",
    "4930901820", "978-3-16-148410-0", "XK-4471-B13", "PROJ-1313", "0x80070013", "miR-1313a",
    "invoice_2024_final.v13.pdf", "walker13.py", "report-final.pdf", "ops13@example.org",
    "https://example.org/13/final?user=7", "été_13",
)  # fmt: skip
QUERIES = ("{}", "what is {}?", "Which record has ({}), please?", "error {} when I connect")
SHORT = (
    "13", "Chapter 13", "room 13 again", "final report", "final pdf 2024", "the record", "user 13", "E 1013",
    "max retry seconds", "get the invoice", "pending total", "acme billing service", "error when I connect",
    "version 4.13", "page 3094", "port 42", "walker py", "phone 49 30", "std vector", "example org", "13 été",
)  # fmt: skip
LONG = "The quarterly review covered staffing, travel, the new lease and the catering budget. " * 12


class PrefixEmbedder(HashedEmbedder):
    """Sees only how words begin, like models that cannot tell one identifier from another."""

    def _one(self, text: str) -> Vectors:
        return super()._one(re.sub(r"(\w\w)\w+", r"\1", text))


def change_one_letter(text: str) -> str:
    """The text with one letter or digit changed."""
    position = next(position for position in range(len(text) // 2, len(text)) if text[position].isalnum())
    return text[:position] + ("8" if text[position] != "8" else "9") + text[position + 1 :]


async def search_keys(engine: Engine, query: str, **fields: Any) -> list[str]:
    return [hit.document.key for hit in (await engine.retrieve(query, **fields)).hits]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=PrefixEmbedder()) as opened:
        await opened.add([f"{text} {number}" for number, text in zip(range(600), cycle(SHORT), strict=False)])
        yield opened


@pytest.mark.parametrize("retrievers", [("keyword", "vector"), ("keyword",)])
async def test_an_exact_match_is_first(engine: Engine, retrievers: tuple[str, ...]) -> None:
    exact = [
        NewDocument(text=f"{LONG}It names {identifier}. {LONG}", key=identifier) for identifier in IDENTIFIERS
    ]
    near = [
        NewDocument(text=change_one_letter(identifier), key=f"near {identifier}")
        for identifier in IDENTIFIERS
    ]
    await engine.add([*near, *exact], wait=True)
    queries = [(query.format(identifier), identifier) for identifier in IDENTIFIERS for query in QUERIES]
    firsts = {
        query: (await search_keys(engine, query, retrievers=retrievers, limit=1), key)
        for query, key in queries
    }
    assert {query: keys for query, (keys, key) in firsts.items() if keys != [key]} == {}


async def test_of_exact_matches_the_better_one_is_first(engine: Engine) -> None:
    await engine.add([NewDocument(text=f"{LONG} CVE-2024-3094", key="long")], wait=True)
    await engine.add([NewDocument(text="CVE-2024-3094 in the archive", key="short")], wait=True)
    hits = (await engine.retrieve("which archive has CVE-2024-3094?", limit=3)).hits
    assert [hit.document.key for hit in hits[:2]] == ["short", "long"]
    assert [hit.parts["identifier"] for hit in hits] == [2.0, 2.0, 0.0]
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in hits)


async def test_a_word_that_many_chunks_hold_is_no_identifier(engine: Engine) -> None:
    await engine.add([f"python_13 {number}" for number in range(30)], wait=True)
    retrieval = await engine.retrieve("python_13")
    assert "identifier" not in retrieval.hits[0].parts


async def test_one_word_among_many_is_no_identifier(engine: Engine) -> None:
    await engine.add([NewDocument(text=f"{LONG} getTotal", key="long")], wait=True)
    query = "final report pdf 2024 pending invoice total billing service version page getTotal"
    assert all("identifier" not in hit.parts for hit in (await engine.retrieve(query)).hits)


async def test_a_filter_and_a_floor_stay_what_they_are(engine: Engine) -> None:
    document = NewDocument(text=f"{LONG} E1013", key="long", metadata={"year": 1999})
    await engine.add([document], wait=True)
    assert "long" not in await search_keys(engine, "E1013", filter=Not(Eq(("year",), 1999)))
    assert "long" not in await search_keys(engine, "E1013", min_similarity=0.99)
    assert "long" not in await search_keys(engine, "E1013", retrievers=("vector",))


async def test_collections_are_merged_with_their_exact_matches(engine: Engine) -> None:
    await engine.collections.create("other")
    await engine.add([NewDocument(text=f"{LONG} E1013 {LONG}", key="long")], collection="other", wait=True)
    await engine.add(["other"] * 9, collection="other", wait=True)
    assert (await search_keys(engine, "E1013", collection=EVERYWHERE))[0] == "long"
