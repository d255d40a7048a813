"""Objects inside an OpenDocument file: charts as titles and a table, formulas as they were typed."""

from collections.abc import Iterator
from typing import Any

from conspectus.sources.files.extract import escape_markdown, one_line
from conspectus.sources.files.tables import render_table
from conspectus.sources.files.zip_xml import Archive, attribute_of, find_child, local_name

TITLES = frozenset({"title", "subtitle"})


def read_object(archive: Archive, frame_content: Any) -> Iterator[str]:
    """Yield the blocks of an object in a part of its own, which an element refers to."""
    reference = attribute_of(frame_content, "href").removeprefix("./").strip("/")
    part = archive.xml(f"{reference}/content.xml") if reference and "://" not in reference else None
    if part is None:
        return
    if local_name(part) == "math":
        yield f"${_formula(part)}$" if _formula(part) else ""
        return
    chart = find_child(part, "body", "chart", "chart")
    if chart is not None:
        yield from _chart(chart)


def _formula(math: Any) -> str:
    """Return the notation in which a formula was typed, else its symbols."""
    typed = [node.text or "" for node in math.iter() if local_name(node) == "annotation"]
    return one_line(" ".join(typed or math.itertext()))


def _chart(chart: Any) -> Iterator[str]:
    for node in chart.iter():
        if local_name(node) in TITLES:
            yield escape_markdown(one_line(" ".join(node.itertext())))
    rows = [node for node in chart.iter() if local_name(node) == "table-row"]
    yield render_table([[one_line(" ".join(cell.itertext())) for cell in row] for row in rows])
