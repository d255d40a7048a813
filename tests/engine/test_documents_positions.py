"""Pages and headings of documents are stored and cited."""

from dataclasses import replace
from pathlib import Path

from tests.office_samples import lines, pdf

import conspectus
from conspectus.model.records import NewDocument, TextPosition
from conspectus.settings import Settings


async def test_pages_and_headings_are_cited_and_their_changes_stored(tmp_path: Path) -> None:
    text = "# Guide\n\n## Setting up\n\nTurn the blue key twice."
    new = NewDocument(text, title="Guide", key="guide", syntax="markdown", places=(TextPosition(0, 7),))
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.add(new)
        window = await engine.window("blue key", 200)
        [citation] = window.citations
        assert (citation.page, citation.heading) == (7, "Guide")
        assert window.text.startswith("[1] Guide (guide), p. 7\n")
        [written] = await engine.add(replace(new, places=(TextPosition(0, 8),)))
        assert written.outcome == "replaced"
        assert (await engine.window("blue key", 200)).citations[0].page == 8
        [written] = await engine.add(replace(new, places=(TextPosition(0, 8),)))
        assert written.outcome == "unchanged"


async def test_a_page_of_a_pdf_is_cited(tmp_path: Path) -> None:
    file = pdf(lines("The dog sleeps."), lines("Results", "The cat runs."), bookmarks=[("Results", 1)])
    (tmp_path / "animals.pdf").write_bytes(file)
    async with conspectus.open(
        tmp_path / "store", settings=Settings(embedder="none", chunk_size=25, chunk_overlap=0)
    ) as engine:
        report = await engine.documents.add_files([tmp_path / "animals.pdf"])
        assert (report.added, report.failures) == (1, ())
        window = await engine.window("cat runs", 20)
    assert window.text.startswith("[1] animals.pdf, p. 2, Results\n")
    assert (window.citations[0].page, window.citations[0].heading) == (2, "Results")
