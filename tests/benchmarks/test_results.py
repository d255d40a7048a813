"""The tables and plots in the documentation of benchmarks are those of the saved results."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.results import DOCS, FILES, MARKED, PAGES, PLOTS, Bars, Result, of_bars, plots, with_tables

SVG = "{http://www.w3.org/2000/svg}"
FIGURE = re.compile(r"\[([^\]]+)\]\(([\w./]+\.md)#([\w-]+)\)")
README = DOCS.parent / "README.md"
SUMMARY = DOCS / "benchmarks" / "index.md"
SIZING = DOCS / "operate" / "sizing.md"
INSTALL = "environment and `pip install conspectus`"
CELLS_IN_README = (
    ("hold [{} %]", "conversations", "locomo", "in windows"),
    ("from {} % to", "parts", "without a query context", "gitter_livechat, thread"),
    ("% to [{} %]", "parts", "default", "gitter_livechat, thread"),
    ("[{} ms](docs/benchmarks/speed.md#memories", "memory", "10,000 memories: recall, p50", "conspectus"),
    ("search in [{} ms]", "peers-1000000", "**hybrid top 10**, p50", "qdrant"),
    ("we do ([{} ms]", "peers-1000000", "**hybrid top 10**, p50", "conspectus"),
    ("in [{} s](docs/benchmarks/speed.md#the-first-hour)", "first-hour", INSTALL, "takes"),
    ("100,000 takes [{} ms]", "latency", "window, query embedded, p50", "100,000 chunks"),
)
"""A figure of the README with the words beside it, and its cell; of two figures in a cell, the last one."""
CELLS_IN_SUMMARY = (
    ("[{} %](evidence.md#conversations)", "conversations", "locomo", "in windows"),
    ("[{} %](evidence.md#the-sentence", "cited", "fastapi_docs: by heading", "256 tokens"),
    ("[{}](evidence.md#documents) | `conspectus", "documents", "hotpotqa100", "hybrid"),
    ("[{}](evidence.md#a-search-with", "linked", "hotpotqa100", "recall@5, graph"),
    ("evidence from {} % to", "parts", "without a query context", "gitter_livechat, thread"),
    ("% to [{} %](evidence.md", "parts", "default", "gitter_livechat, thread"),
    ("recall@10 of [{}](speed.md#memories", "memory", "locomo: recall@10", "conspectus"),
    ("without a language model: [{}]", "memory", "locomo: recall@10", "mem0"),
    ("R@1 of [{}]", "moments", "tutorialvqa: engine", "R@1 iou .3"),
    ("[{} %](speed.md#reading-files) of cells", "reading", "pdf: conspectus", "cells"),
    ("MarkItDown: [{} %]", "reading", "pdf: markitdown", "cells"),
    ("recall@5 of [{}](speed.md#scanned", "scans", "scan", "recall@5"),
    ("text layer: [{}]", "scans", "text layer", "recall@5"),
    ("100,000 chunks, query embedded | [{} ms]", "latency", "window, query embedded, p50", "100,000 chunks"),
    ("1,000,000 chunks, query embedded | [{} ms]", "latency", "window, query embedded, p50", "1,000,000"),
    ("10,000 memories | [{} ms]", "memory", "10,000 memories: recall, p50", "conspectus"),
    ("found by keywords | [{}]", "ingest", "found by keywords", "chunks a second"),
    ("included model | [{}]", "ingest", "with vectors", "chunks a second"),
    ("million graph edges | [{} ms]", "graph", "store", "p50"),
    ("in a folder | [{} MB]", "peers-100000", "disk", "conspectus"),
    ("in PostgreSQL | [{} ms]", "stores", "pgvector | 100,000", "window p50"),
    ("first answer | [{} s]", "first-answer", "conspectus", "first answer"),
    ("[{}](safety.md#killed", "kills", "folder", "faults"),
    ("faults after {} kills", "kills", "folder", "servers killed"),
    ("[{}](safety.md#trust)", "trust", "attacks shown", "number"),
    ("shown in {} histories", "trust", "histories", "number"),
    ("[{}](safety.md#under-load", "endurance", "1 | 121 | memory megabytes", "ratio"),
    ("[{} ms](others.md#a-million-chunks), ours", "peers-1000000", "**hybrid top 10**, p50", "qdrant"),
    ("ours [{} ms]", "peers-1000000", "**hybrid top 10**, p50", "conspectus"),
    ("[{} MB](others.md#beside-other-engines) |\n", "peers-100000", "disk", "lancedb"),
    ("nDCG@10 of {}, vectors", "documents", "cosqa", "hybrid"),
    ("vectors [{}](evidence.md#documents)", "documents", "cosqa", "vectors"),
    ("recall@10 of [{}](evidence.md#conversations)", "conversations", "qmsum", "recall@10"),
    ("recall@1 of [{}]", "languages-minilm", "pairs of languages", "both"),
    ("multilingual`: [{}]", "languages-multilingual", "pairs of languages", "both"),
    ("F1 of [{}]", "threads", "**gitter_livechat**", "links"),
    ("message before: [{}]", "threads", "gitter_livechat: the message before", "links"),
    ("in mem0. | [{} ms]", "memory", "10,000 memories: remember, p50", "conspectus"),
    ("mem0: [{} ms]", "memory", "10,000 memories: remember, p50", "mem0"),
    ("a window takes [{} ms]", "stores", "milvus | 100,000", "window p50"),
    ("share one process. | [{}]", "server", "64", "search"),
    ("p95 [{}](safety.md", "availability", "6 windows of 300,000 tokens over 1,000 candidates", "times idle"),
    ("p95 of [{} ms]", "purge-large", "100,000", "p95 during a purge"),
)
"""The same for the summary of the benchmarks; a row may be named by its first cells, joined with ` | `."""
SUMMED = {"four-servers-on-one-postgresql", "retrieved-text-in-a-prompt"}
"""Sections whose figures are sums of a column."""
CELLS = [(README, *cell) for cell in CELLS_IN_README] + [(SUMMARY, *cell) for cell in CELLS_IN_SUMMARY]
TABLE = Result(
    "python benchmarks/peers.py", "2026-11-27", "2 cores", "", ["", "conspectus 0.1.0", "<other> 2", "third"],
    [["**build**", "1,500.5 s", "3,001 s (2x)", "-"], ["disk", "1 MB", "2 MB", "3 MB"]],
)  # fmt: skip


def test_the_pages_have_the_tables_of_the_results() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    assert pages == {path: with_tables(page) for path, page in pages.items()}, "run benchmarks/results.py"


def test_every_result_is_in_a_page_and_has_a_plot() -> None:
    names = {match[2] for path in PAGES for match in MARKED.finditer(path.read_text())}
    assert names == {path.stem for path in FILES.glob("*.json")}
    assert names == {path.stem for path in plots()}


def test_the_plots_are_drawn_from_the_results() -> None:
    stored = {path: path.read_text(encoding="utf-8") for path in plots()}
    assert stored == plots(), "run benchmarks/results.py"
    for svg in stored.values():
        assert ElementTree.fromstring(svg).findtext(f"{SVG}title") in {plot.title for plot in PLOTS.values()}


def test_bars_are_as_long_as_the_numbers_in_their_cells() -> None:
    svg = ElementTree.fromstring(of_bars("Work", [Bars.of_row(TABLE, "build"), Bars.of_row(TABLE, "disk")]))
    page, *bars = svg.iter(f"{SVG}rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths == pytest.approx([75.0, 150.0, 0.0, 50.0, 100.0, 150.0], abs=0.1)
    assert [bar.get("class") for bar in bars[:3]] == [None, "other", "other"]
    assert page.get("class") == "page"
    texts = [element.text for element in svg.iter(f"{SVG}text")]
    assert texts[:5] == ["Work", "build", "conspectus 0.1.0", "1,500.5 s", "<other> 2"]


def test_a_table_replaces_the_one_before() -> None:
    stored = Result.read("stores")
    assert stored is not None
    page = with_tables("above\n<!-- result: stores -->\nold\n<!-- end of result -->\nbelow\n")
    assert stored.command.startswith("python benchmarks/stores.py")
    assert page.startswith(f"above\n<!-- result: stores -->\n\n`{stored.command}`")
    assert f"| {' | '.join(stored.rows[0])} |" in page and "old" not in page and page.endswith("below\n")
    assert "](../figures/stores.svg)\n" in page


def test_a_result_without_a_file_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        with_tables("<!-- result: nothing -->\n<!-- end of result -->")


def read_section(page: Path, anchor: str) -> str:
    """What stands below the heading of an anchor, up to the next one of its level or above."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marks = {
        number: re.sub(r"[^\w\- ]", "", line.partition(" ")[2].lower()).replace(" ", "-")
        for number, line in enumerate(lines)
        if re.match("#+ ", line)
    }
    [start] = [number for number, name in marks.items() if name == anchor]
    level = len(lines[start].partition(" ")[0])
    ends = [number for number in marks if number > start and len(lines[number].partition(" ")[0]) <= level]
    return "\n".join(lines[start + 1 : min(ends, default=len(lines))])


def list_numbers(text: str) -> set[float]:
    return {float(digits.replace(",", "")) for digits in re.findall(r"(?:\d[\d,]*)?\.?\d+", text)}


@pytest.mark.parametrize("page", [README, SIZING, SUMMARY], ids=lambda path: path.name)
def test_a_figure_is_in_the_section_that_it_links_to(page: Path) -> None:
    links = [
        (text, (page.parent / path).resolve(), anchor)
        for text, path, anchor in FIGURE.findall(page.read_text(encoding="utf-8"))
    ]
    figures = [link for link in links if link[1].parent == SUMMARY.parent]
    assert sum(bool(list_numbers(text)) for text, _, _ in figures) >= 6
    for text, target, anchor in figures:
        assert (list_numbers(text) - list_numbers(read_section(target, anchor)), text, anchor) == (
            set(),
            text,
            anchor,
        )


@pytest.mark.parametrize(("page", "words", "name", "row", "column"), CELLS)
def test_a_figure_is_the_cell_that_it_comes_from(
    page: Path, words: str, name: str, row: str, column: str
) -> None:
    before, _, after = words.partition("{}")
    text = page.read_text(encoding="utf-8")
    text = " ".join(text.split()) if page == README else text
    [figure] = re.findall(rf"{re.escape(before)}([\d.,]+){re.escape(after)}", text)
    stored = Result.read(name)
    assert stored is not None
    titles = {title: number for number, title in enumerate(stored.columns)}
    [position] = (
        [titles[column]]
        if column in titles
        else [number for title, number in titles.items() if title.startswith(column)]
    )
    width = row.count(" | ") + 1
    [cell] = [cells[position] for cells in stored.rows if " | ".join(cells[:width]) == row]
    number = re.findall(r"\d[\d,.]*", cell)[-1 if "(" in cell and "x)" not in cell and "%" not in cell else 0]
    decimals = len(figure.partition(".")[2])
    assert figure.replace(",", "") == f"{float(number.replace(',', '')):.{decimals}f}", cell


@pytest.mark.parametrize("page", [README, SUMMARY], ids=lambda path: path.name)
def test_every_figure_that_links_to_a_table_has_a_cell(page: Path) -> None:
    """A figure that is typed by hand and named nowhere here would stay when its result changes."""
    text = page.read_text(encoding="utf-8")
    text = " ".join(text.split()) if page == README else text
    for path, words, *_ in CELLS:
        if path == page:
            before, _, after = words.partition("{}")
            text = re.sub(rf"{re.escape(before)}[\d.,]+{re.escape(after)}", f"{before}…{after}", text)
    links = [link for link in FIGURE.findall(text) if list_numbers(link[0]) and link[2] not in SUMMED]
    assert links == [], "add the cell of each figure to CELLS_IN_README or CELLS_IN_SUMMARY"


@pytest.mark.parametrize("page", [README, SUMMARY], ids=lambda path: path.name)
def test_the_number_of_hostile_texts_is_the_sum_of_the_table(page: Path) -> None:
    stored = Result.read("injection")
    assert stored is not None
    number = f"{sum(int(texts) for _, texts, _ in stored.rows):,}"
    assert {through for _, _, through in stored.rows} == {"0"}
    assert f" of {number} " in page.read_text(encoding="utf-8").replace("Of ", " of ")


def test_the_number_of_requests_is_the_sum_of_the_table() -> None:
    stored = Result.read("fleet")
    assert stored is not None
    requests = sum(int(cells[1].replace(",", "")) for cells in stored.rows)
    assert f"0 leaks in [{requests:,}](" in SUMMARY.read_text(encoding="utf-8")


def test_how_many_times_faster_another_engine_is_follows_from_the_cells() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    [(theirs, times, ours)] = re.findall(
        r"search in \[([\d.]+) ms\]\(\S+\), ([\d.]+) times faster than we do \(\[([\d.]+) ms\]", text
    )
    assert times == f"{float(ours) / float(theirs):.1f}"
