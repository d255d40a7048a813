"""Awkward tables are read in each format as a person sees them."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.made_pages import MadePage
from benchmarks.reading_scores import score

from conspectus import bootstrap
from conspectus.ports import FoundFile
from conspectus.settings import Settings

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KINDS = ("html", "epub", "docx", "pptx", "xlsx", "odt", "odp", "ods", "md", "csv")
PEP = "PEP: {}\nTitle: {}\nStatus: Final\nType: Process\nCreated: 13-Jun-2000\n\nText.\n"
LONG = "A title that is too long for the column in which it stands"


@pytest.fixture
def table_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a benchmark that makes tables; its neighbors are modules of their own for scripts."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("made_tables")


def check_cells(pages: list[MadePage], folder: Path) -> None:
    files = bootstrap.local_files(Settings())
    for page in pages:
        path = folder / page.name
        path.write_bytes(page.content)
        parsed = files.parse(FoundFile(path, path.name, len(page.content)))
        text = "\n\n".join(document.text for document in parsed.documents)
        counted = score(page.expected, text)
        assert (counted.cells, counted.cells_in_order) == (1.0, 1.0), f"{page.name}: {text}"


def test_merged_cells_are_expected_in_each_row_and_column(table_module: ModuleType) -> None:
    rows = [[table_module.Merged("a", rows=2), table_module.Merged("b", columns=2)], ["c", "d"]]
    assert table_module.filled(rows) == [["a", "b", "b"], ["a", "c", "d"]]


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_tables_are_read_whole(kind: str, table_module: ModuleType, tmp_path: Path) -> None:
    assert set(table_module.WRITERS) == set(KINDS)
    check_cells([page for page in table_module.made_tables() if page.kind == f"{kind}, tables"], tmp_path)


@pytest.mark.usefixtures("table_module")
def test_sheets_are_read_as_they_are_shown(tmp_path: Path) -> None:
    check_cells(list(importlib.import_module("made_sheets").made_sheets()), tmp_path)


def test_lists_and_workbooks_of_peps_are_read_whole(table_module: ModuleType, tmp_path: Path) -> None:
    for number in range(1, 14):
        text = PEP.format(number, f"Title {number}") + f"\n{'A paragraph of prose, set by script. ' * 4}\n"
        (tmp_path / f"pep-{number:04}.rst").write_text(text, encoding="utf-8")
    lists = list(table_module.made_pep_tables(tmp_path))
    assert len(lists) == table_module.MADE_LISTS * len(KINDS)
    check_cells(lists[: len(KINDS)], tmp_path)
    workbooks = importlib.import_module("made_sheets").made_workbooks(tmp_path)
    first = next(workbooks)
    assert "13 PEPs that are Process" in first.expected and "A paragraph of prose" in first.expected
    check_cells([first], tmp_path)


@pytest.mark.usefixtures("table_module")
def test_wrapped_cells_of_pdf_tables_are_joined_with_and_without_lines(tmp_path: Path) -> None:
    for number in range(1, 14):
        text = PEP.format(number, LONG if number % 3 else "Short")
        (tmp_path / f"pep-{number:04}.rst").write_text(text, encoding="utf-8")
    pdf_tables = importlib.import_module("made_pdf_tables")
    pages = list(pdf_tables.made_pdf_tables(tmp_path, 2))
    assert len(pages) == 2 * len(pdf_tables.STYLES)
    check_cells(pages, tmp_path)
