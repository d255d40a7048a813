"""The tables in the documentation of benchmarks are those of the saved results."""

import pytest
from benchmarks.results import FILES, MARKED, PAGES, Result, with_tables


def test_the_pages_have_the_tables_of_the_results() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    assert pages == {path: with_tables(page) for path, page in pages.items()}, "run benchmarks/results.py"


def test_every_result_is_in_a_page() -> None:
    shown = {found[2] for path in PAGES.glob("*.md") for found in MARKED.finditer(path.read_text())}
    assert shown == {path.stem for path in FILES.glob("*.json")}


def test_a_table_replaces_the_one_before() -> None:
    result = Result.read("stores")
    assert result is not None
    page = with_tables("above\n<!-- result: stores -->\nold\n<!-- end of result -->\nbelow\n")
    assert page.startswith("above\n<!-- result: stores -->\n\n`python benchmarks/stores.py`")
    assert f"| {' | '.join(result.rows[0])} |" in page and "old" not in page and page.endswith("below\n")


def test_a_result_without_a_file_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        with_tables("<!-- result: nothing -->\n<!-- end of result -->")
