"""PPTX: each slide is a page with its title as a heading; tables, charts, diagrams and notes are kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.sources.files.drawingml import chart, diagram, line_of, paragraphs_of
from conspectus.sources.files.markdown_blocks import (
    PAGE_BREAK,
    Extract,
    heading,
    item,
    joined,
    one_line,
    paged,
    plain,
    table,
)
from conspectus.sources.files.zip_xml import (
    Archive,
    Relation,
    attribute,
    child,
    local,
    main_part,
    number,
    relations,
)

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
TITLES = frozenset({"title", "ctrTitle"})
UNTITLED = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
BULLETED = frozenset({"body", "obj", ""})


def read_slides(archive: Archive) -> Extract:
    """The text of a PPTX in the order of the slides. Raises Refused."""
    name = main_part(archive)
    targets = relations(archive, name)
    listed = child(archive.xml(name), "sldIdLst")
    ids = [] if listed is None else [_relation_id(each) for each in listed]
    slides = [_Slide(archive, targets[each].target) for each in ids if each in targets]
    blocks = (block for slide in slides for block in (PAGE_BREAK, *slide.blocks()))
    text, places = paged(joined(blocks), first=0)
    title = next((slide.title for slide in slides if slide.title), "")
    return Extract(text, MEDIA_TYPE, title=title, places=places[1:])


@dataclass(slots=True)
class _Slide:
    archive: Archive
    name: str
    title: str = ""

    def blocks(self) -> Iterator[str]:
        """The title first, then everything on the slide, then what the speaker noted."""
        root = self.archive.xml(self.name)
        tree = child(root, "cSld", "spTree")
        shapes = [] if tree is None else list(_shapes(tree))
        links = relations(self.archive, self.name)
        titles = [shape for shape in shapes if _placeholder(shape) in TITLES]
        for shape in titles:
            text = one_line(paragraphs_of(shape))
            self.title = self.title or text
            yield heading(text, 1)
        for shape in shapes:
            if shape not in titles:
                yield from self._shape(shape, links)
        for each in links.values():
            if each.kind == "notesSlide":
                yield from self._notes(each.target)

    def _shape(self, shape: Any, links: Mapping[str, Relation]) -> Iterator[str]:
        kind, name = _placeholder(shape), local(shape)
        if kind in UNTITLED:
            return
        if name == "pic":
            names = (each for each in shape.iter() if local(each) == "cNvPr")
            described = one_line(" ".join(attribute(each, "descr") for each in names))
            yield f"[Image: {described}]" if described else ""
        elif name == "graphicFrame":
            yield from self._graphic(shape, links)
        else:
            yield from _paragraphs(shape, bulleted=kind in BULLETED)

    def _graphic(self, frame: Any, links: Mapping[str, Relation]) -> Iterator[str]:
        for each in frame.iter():
            name = local(each)
            if name == "tbl":
                rows = [row for row in each if local(row) == "tr"]
                yield table([[paragraphs_of(cell) for cell in row if local(cell) == "tc"] for row in rows])
            elif name == "chart" and attribute(each, "id") in links:
                yield from chart(self.archive.xml(links[attribute(each, "id")].target))
            elif name == "relIds" and attribute(each, "dm") in links:
                yield from diagram(self.archive.xml(links[attribute(each, "dm")].target))

    def _notes(self, name: str) -> Iterator[str]:
        tree = child(self.archive.xml(name), "cSld", "spTree")
        shapes = [] if tree is None else [each for each in _shapes(tree) if _placeholder(each) == "body"]
        text = "\n".join(filter(None, map(paragraphs_of, shapes)))
        if text.strip():
            yield f"Notes: {plain(text)}"


def _shapes(tree: Any) -> Iterator[Any]:
    """Shapes, pictures and frames in order, those of groups and alternatives included."""
    for each in tree:
        name = local(each)
        if name in {"sp", "pic", "graphicFrame", "cxnSp"}:
            yield each
        elif name in {"grpSp", "Choice"}:
            yield from _shapes(each)
        elif name == "AlternateContent" and len(each):
            chosen = next((form for form in each if any(True for _ in _shapes(form))), each[0])
            yield from _shapes(chosen)


def _relation_id(element: Any) -> str:
    names = [name for name in element.attrib if name.endswith("}id")]
    return str(element.get(names[0])) if names else ""


def _placeholder(shape: Any) -> str | None:
    """What the layout reserves the shape for; None for a shape of its own."""
    found = next((each for each in shape.iter() if local(each) == "ph"), None)
    return None if found is None else attribute(found, "type")


def _paragraphs(shape: Any, *, bulleted: bool) -> Iterator[str]:
    found = [each for each in shape.iter() if local(each) == "p"]
    for each in found:
        text = line_of(each)
        properties = child(each, "pPr")
        level = 0 if properties is None else number(attribute(properties, "lvl"))
        marked = bulleted if properties is None else _marked(properties, bulleted)
        yield item(text, max(0, level)) if marked and len(found) > 1 else plain(text)


def _marked(properties: Any, default: bool) -> bool:
    names = {local(each) for each in properties}
    return bool(names & {"buChar", "buAutoNum", "buBlip"}) or (default and "buNone" not in names)
