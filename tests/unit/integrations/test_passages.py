"""Passages for frameworks."""

import asyncio

import pytest

from conspectus import NewDocument, Settings, bootstrap
from conspectus.integrations.passages import Ask

HEADER = "| Berth | Fee |\n| --- | --- |\n"
ROWS = "".join(f"| Heron-{number} | {1_000 + number} |\n" for number in range(1, 301))


@pytest.mark.parametrize("max_tokens", [None, 150])
def test_rows_of_a_table_stand_below_its_header(tmp_path, max_tokens):
    async def ask():
        async with bootstrap.open(tmp_path, settings=Settings(embedder="none")) as engine:
            await engine.add(NewDocument(f"Fees\n\n{HEADER}{ROWS}", title="Fees", syntax="markdown"))
            return await Ask(limit=1, max_tokens=max_tokens).passages(engine, "fee of berth Heron-287")

    (passage,) = asyncio.run(ask())
    assert passage.text.startswith(HEADER)
    assert "| Heron-287 | 1287 |" in passage.text
    length = passage.citation.end - passage.citation.start
    assert passage.text[len(HEADER) :] in ROWS and len(passage.text) == len(HEADER) + length
