"""Presentations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import (
    PAGE_BREAK,
    Extract,
    escape_markdown,
    format_heading,
    format_list_item,
    join_blocks,
    one_line,
    split_pages,
)
from conspectus.sources.files.missing_words import missing_words_notice
from conspectus.sources.files.office_texts import STANDING_PLACEHOLDERS, texts_of_parts
from conspectus.sources.files.tables import MAX_SPAN, Cell, render_cells
from conspectus.sources.files.zip_xml import (
    Archive,
    Relation,
    attribute_of,
    find_child,
    find_main_part,
    line_of,
    local_name,
    paragraphs_of,
    parse_number,
    read_chart,
    read_diagram,
    read_relations,
)

PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
TITLES = frozenset({"title", "ctrTitle"})
TRUE = frozenset({"1", "true"})
MAX_ORDERED_SHAPES = 100
BULLETED = frozenset({"body", "obj", ""})

Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom on a slide."""


def read_slides(archive: Archive) -> Extract:
    """Return the text of a PPTX in the order of the slides. Raises Refused."""
    name = find_main_part(archive)
    targets = read_relations(archive, name)
    listed = find_child(archive.xml(name), "sldIdLst")
    ids = [] if listed is None else [_relation_id(element) for element in listed]
    slides = [_Slide(archive, targets[identifier].target) for identifier in ids if identifier in targets]
    blocks = (block for slide in slides for block in (PAGE_BREAK, *slide.blocks()))
    text, places = split_pages(join_blocks(blocks), first=0)
    title = next((slide.title for slide in slides if slide.title), "")
    notice = missing_words_notice(text, texts_of_parts(archive.unread()))
    return Extract(text, PPTX, title=title, places=places[1:], notice=notice)


@dataclass(slots=True)
class _Slide:
    archive: Archive
    name: str
    title: str = ""

    def blocks(self) -> Iterator[str]:
        """Yield the title, everything else on the slide, then the speaker notes and the comments."""
        root = self.archive.xml(self.name)
        tree = find_child(root, "cSld", "spTree")
        shapes = [] if tree is None else list(_shapes(tree))
        links = read_relations(self.archive, self.name)
        titles = [shape for shape in shapes if _placeholder(shape) in TITLES]
        for shape in titles:
            text = one_line(paragraphs_of(shape))
            self.title = self.title or text
            yield format_heading(text, 1)
        for shape in _order_by_column([shape for shape in shapes if shape not in titles]):
            yield from self._shape(shape, links)
        for link in links.values():
            if link.kind == "notesSlide":
                yield from self._notes(link.target)
        for link in links.values():
            if link.kind == "comments":
                yield from self._comments(link.target)

    def _shape(self, shape: Any, links: Mapping[str, Relation]) -> Iterator[str]:
        kind, name = _placeholder(shape), local_name(shape)
        if kind in STANDING_PLACEHOLDERS:
            return
        if name == "graphicFrame":
            yield from self._graphic(shape, links)
        elif name != "pic":
            yield from _paragraphs(shape, bulleted=kind in BULLETED)
        names = (node for node in shape.iter() if local_name(node) == "cNvPr")
        description = one_line(" ".join(attribute_of(properties, "descr") for properties in names))
        yield f"[Image: {description}]" if description else ""
        for node in shape.iter():
            if local_name(node) == "blip" and attribute_of(node, "embed") in links:
                yield photo_line(self.archive.read(links[attribute_of(node, "embed")].target))

    def _graphic(self, frame: Any, links: Mapping[str, Relation]) -> Iterator[str]:
        for node in frame.iter():
            name = local_name(node)
            if name == "tbl":
                yield render_cells([list(_cells(row)) for row in node if local_name(row) == "tr"])
            elif name == "chart" and attribute_of(node, "id") in links:
                yield from read_chart(self.archive.xml(links[attribute_of(node, "id")].target))
            elif name == "relIds" and attribute_of(node, "dm") in links:
                yield from read_diagram(self.archive.xml(links[attribute_of(node, "dm")].target))

    def _notes(self, name: str) -> Iterator[str]:
        tree = find_child(self.archive.xml(name), "cSld", "spTree")
        shapes = [
            shape
            for shape in (() if tree is None else _shapes(tree))
            if _placeholder(shape) not in STANDING_PLACEHOLDERS
        ]
        text = "\n".join(filter(None, map(paragraphs_of, shapes)))
        if text.strip():
            yield f"Notes: {escape_markdown(text)}"

    def _comments(self, name: str) -> Iterator[str]:
        for node in self.archive.xml(name).iter():
            text = ""
            if local_name(node) == "txBody":
                text = paragraphs_of(node)
            elif local_name(node) == "text":
                text = node.text or ""
            yield f"Comment: {one_line(text)}" if text.strip() else ""


def _order_by_column(shapes: Sequence[Any]) -> list[Any]:
    """Return shapes in their order, but what stands in a column below another shape after that one.

    The order of a slide is that in which its author made the shapes, and that of screen readers. A footnote
    that was made before the table above it is read after the table.
    """
    if len(shapes) > MAX_ORDERED_SHAPES:
        return list(shapes)
    waiting = [(shape, _box(shape)) for shape in shapes]
    ordered = []
    while waiting:
        boxes = [box for _, box in waiting if box]
        first = next(
            number
            for number, (_, box) in enumerate(waiting)
            if box is None or not any(_is_above(other, box) for other in boxes)
        )
        ordered.append(waiting.pop(first)[0])
    return ordered


def _box(shape: Any) -> Box | None:
    """Return left, top, right and bottom of a shape; None for one in a group, and where its layout has it."""
    parent = shape.getparent()
    if parent is None or local_name(parent) != "spTree":
        return None
    frame = next((node for node in shape.iter() if local_name(node) == "xfrm"), None)
    offset, extent = (None, None) if frame is None else (find_child(frame, "off"), find_child(frame, "ext"))
    if offset is None or extent is None:
        return None
    left, top = parse_number(attribute_of(offset, "x")), parse_number(attribute_of(offset, "y"))
    return (
        left,
        top,
        left + parse_number(attribute_of(extent, "cx")),
        top + parse_number(attribute_of(extent, "cy")),
    )


def _is_above(box: Box, other: Box) -> bool:
    """Return whether a shape ends above the other one, in the same column."""
    left, _, right, bottom = box
    return bottom <= other[1] < other[3] and left < other[2] and other[0] < right


def _shapes(tree: Any) -> Iterator[Any]:
    """Yield shapes, pictures and frames in order, including those in groups and alternatives."""
    for node in tree:
        name = local_name(node)
        if name in {"sp", "pic", "graphicFrame", "cxnSp"}:
            yield node
        elif name in {"grpSp", "Choice"}:
            yield from _shapes(node)
        elif name == "AlternateContent" and len(node):
            alternative = next((form for form in node if any(True for _ in _shapes(form))), node[0])
            yield from _shapes(alternative)


def _cells(row: Any) -> Iterator[Cell]:
    """Yield the cells of a table row, without those that a cell to the left covers."""
    for cell in row:
        if local_name(cell) == "tc" and attribute_of(cell, "hMerge") not in TRUE:
            columns = max(1, min(parse_number(attribute_of(cell, "gridSpan"), 1), MAX_SPAN))
            yield Cell(paragraphs_of(cell), columns, is_continued=attribute_of(cell, "vMerge") in TRUE)


def _relation_id(element: Any) -> str:
    names = [name for name in element.attrib if name.endswith("}id")]
    return str(element.get(names[0])) if names else ""


def _placeholder(shape: Any) -> str | None:
    """Return the role of a placeholder shape in the layout; None for other shapes."""
    placeholder = next((node for node in shape.iter() if local_name(node) == "ph"), None)
    return None if placeholder is None else attribute_of(placeholder, "type")


def _paragraphs(shape: Any, *, bulleted: bool) -> Iterator[str]:
    paragraphs = [node for node in shape.iter() if local_name(node) == "p"]
    counts: dict[int, int] = {}
    for paragraph in paragraphs:
        text = line_of(paragraph)
        properties = find_child(paragraph, "pPr")
        level = 0 if properties is None else max(0, parse_number(attribute_of(properties, "lvl")))
        numbering = find_child(paragraph, "pPr", "buAutoNum")
        counts = {above: count for above, count in counts.items() if above <= level}
        mark = "-"
        if numbering is None:
            counts.pop(level, None)
        elif text.strip():
            first = parse_number(attribute_of(numbering, "startAt"), 1)
            counts[level] = counts.get(level, first - 1) + 1
            mark = f"{counts[level]}."
        is_item = bulleted if properties is None else _is_list_item(properties, bulleted)
        yield (
            format_list_item(text, level, mark) if is_item and len(paragraphs) > 1 else escape_markdown(text)
        )


def _is_list_item(properties: Any, default: bool) -> bool:
    names = {local_name(node) for node in properties}
    return bool(names & {"buChar", "buAutoNum", "buBlip"}) or (default and "buNone" not in names)
