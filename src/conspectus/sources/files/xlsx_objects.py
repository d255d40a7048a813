"""What a sheet of an XLSX shows beside its cells: drawings, charts, comments and margins."""

from collections.abc import Iterator, Mapping
from typing import Any

from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import escape_markdown, one_line
from conspectus.sources.files.office_texts import MARGIN_ELEMENTS, header_text, is_threaded_copy
from conspectus.sources.files.sheet_blocks import Drawing
from conspectus.sources.files.zip_xml import (
    Archive,
    Relation,
    attribute_of,
    find_child,
    local_name,
    paragraphs_of,
    parse_number,
    read_chart,
    read_diagram,
    read_relations,
)


def drawings_of_sheet(archive: Archive, part: str) -> Iterator[Drawing]:
    """Yield the drawings of a sheet, or of a sheet that is a chart."""
    for link in _links(archive, part).values():
        if link.kind == "drawing":
            links = _links(archive, link.target)
            for anchor in archive.xml(link.target):
                row = find_child(anchor, "from", "row")
                number_of_row = parse_number(None if row is None else row.text)
                yield Drawing(number_of_row, list(_drawing_blocks(archive, anchor, links)))


def comments_of_sheet(archive: Archive, part: str) -> Iterator[str]:
    """Yield the comments on the cells of a sheet as blocks of Markdown."""
    for link in _links(archive, part).values():
        if link.kind in {"comments", "threadedComment"}:
            yield from _comments(archive.xml(link.target))


def margins_of_sheet(sheet: Any) -> Iterator[str]:
    """Yield the headers and footers of the printed pages of a sheet, each once."""
    margins = [element for element in sheet.iter() if local_name(element) in MARGIN_ELEMENTS]
    texts = ((local_name(margin)[-6:].capitalize(), header_text(margin.text or "")) for margin in margins)
    yield from dict.fromkeys(f"{name}: {text}" for name, text in texts if text)


def _drawing_blocks(archive: Archive, anchor: Any, links: Mapping[str, Relation]) -> Iterator[str]:
    for node in anchor.iter():
        name = local_name(node)
        if name == "txBody":
            yield escape_markdown(paragraphs_of(node))
        elif name == "cNvPr" and attribute_of(node, "descr").strip():
            yield f"[Image: {one_line(attribute_of(node, 'descr'))}]"
        elif name == "blip" and attribute_of(node, "embed") in links:
            yield photo_line(archive.read(links[attribute_of(node, "embed")].target))
        elif name == "chart" and attribute_of(node, "id") in links:
            yield from read_chart(archive.xml(links[attribute_of(node, "id")].target))
        elif name == "relIds" and attribute_of(node, "dm") in links:
            yield from read_diagram(archive.xml(links[attribute_of(node, "dm")].target))


def _comments(part: Any) -> Iterator[str]:
    for node in part.iter():
        text = find_child(node, "text") if local_name(node) in {"comment", "threadedComment"} else None
        if text is None or is_threaded_copy(node):
            continue
        words = one_line("".join(text.itertext()))
        yield f"Comment on {attribute_of(node, 'ref')[:20]}: {words}" if words else ""


def _links(archive: Archive, part: str) -> Mapping[str, Relation]:
    links = read_relations(archive, part) if part else {}
    return {name: link for name, link in links.items() if not link.external}
