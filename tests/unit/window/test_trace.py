"""Citations of a window."""

from dataclasses import replace

import conspectus
from conspectus import NewDocument, Settings

ROWS = "".join(f"| Heron-{number} | {1_000 + number} |\n" for number in range(200))
TABLE = f"# Fees\n\n| Berth | Fee in euros |\n| --- | --- |\n{ROWS}"


async def test_a_citation_of_a_row_has_the_header_of_its_table() -> None:
    async with conspectus.open(settings=replace(Settings(), embedder="none")) as engine:
        await engine.add([NewDocument(TABLE, key="fees.md", syntax="markdown")])
        window = await engine.window("Heron-150", max_tokens=200)
    [citation] = window.citations
    assert citation.table_header == "| Berth | Fee in euros |\n| --- | --- |\n"
    assert "| Heron-150 | 1150 |" in TABLE[citation.start : citation.end]


async def test_a_citation_of_prose_has_none() -> None:
    async with conspectus.open(settings=replace(Settings(), embedder="none")) as engine:
        await engine.add([NewDocument("The ferry leaves at noon.", key="a.md", syntax="markdown")])
        [citation] = (await engine.window("ferry", max_tokens=200)).citations
    assert citation.table_header is None
