"""What DrawingML holds in every kind of office document: paragraphs of shapes, and charts."""

from collections.abc import Iterator
from typing import Any

from conspectus.sources.files.markdown_blocks import item, one_line, plain, table
from conspectus.sources.files.zip_xml import child, local


def paragraphs_of(element: Any) -> str:
    """The paragraphs of a shape, a cell or a title, one a line."""
    return "\n".join(line_of(each) for each in element.iter() if local(each) == "p").strip()


def line_of(paragraph: Any) -> str:
    """The text of one paragraph."""
    marks = {"br": "\n", "tab": " "}
    parts = ((local(each), each) for each in paragraph.iter())
    return "".join((each.text or "") if name == "t" else marks.get(name, "") for name, each in parts)


def chart(part: Any) -> Iterator[str]:
    """A chart as its title and a table of its numbers: a row for each category, a column for each series."""
    titles = (each for each in part.iter() if local(each) == "title")
    yield from (plain(one_line(paragraphs_of(each))) for each in titles)
    series = [each for each in part.iter() if local(each) == "ser"]
    names = [" ".join(_values(child(each, "tx"))) for each in series]
    categories = next((found for each in series if (found := _values(_first(each, "cat", "xVal")))), [])
    columns = [_values(_first(each, "val", "yVal")) for each in series]
    height = max(map(len, [categories, *columns]), default=0)
    filled = [[*column, *[""] * height][:height] for column in (categories, *columns)]
    yield table([["", *names], *map(list, zip(*filled, strict=True))])


def diagram(part: Any) -> Iterator[str]:
    """The texts of a diagram as a list."""
    return (item(line_of(each), 0) for each in part.iter() if local(each) == "p")


def _first(element: Any, *names: str) -> Any | None:
    return next((found for name in names if (found := child(element, name)) is not None), None)


def _values(element: Any | None) -> list[str]:
    return [] if element is None else [each.text or "" for each in element.iter() if local(each) == "v"]
