"""EPUB books, spreadsheets and presentations."""

import io
import posixpath
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import unquote

from python_calamine import CalamineError, CalamineWorkbook

from conspectus.deferred import dataclass
from conspectus.sources.files.html import visible
from conspectus.sources.files.zip_xml import (
    PAGE_BREAK,
    Archive,
    Extract,
    Refused,
    Relation,
    Unsupported,
    attribute,
    chart,
    child,
    diagram,
    heading,
    item,
    joined,
    line_of,
    local,
    main_part,
    number,
    one_line,
    paged,
    paragraphs_of,
    plain,
    relations,
    table,
)

PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml"})


def read_book(archive: Archive) -> Extract:
    """Return the text of an EPUB. Raises Refused."""
    container = archive.xml("META-INF/container.xml")
    files = (attribute(each, "full-path") for each in container.iter() if local(each) == "rootfile")
    name = next(files, "")
    if name not in archive:
        raise Refused("a damaged book: its package is missing")
    package = archive.xml(name)
    listed = archive.xml("META-INF/encryption.xml")
    names = (attribute(each, "URI") for each in listed.iter() if local(each) == "CipherReference")
    locked = frozenset(unquote(name).lower() for name in names)
    chapters = [each for each in _spine(package, posixpath.dirname(name)) if each in archive]
    if chapters and locked.issuperset(each.lower() for each in chapters):
        raise Refused("is encrypted: its publisher allows only certain programs to read it")
    texts = [_chapter(archive.read(each)) for each in chapters if each.lower() not in locked]
    metadata = child(package, "metadata")
    described = () if metadata is None else reversed(metadata)
    details = {local(each): (each.text or "").strip() for each in described}
    text = "\n\n".join(filter(None, texts))
    return Extract(
        text, "application/epub+zip", title=details.get("title", ""), author=details.get("creator") or None
    )


def _chapter(data: bytes) -> str:
    """Return the text of a chapter, decoded as UTF-8 unless it is invalid and declares another encoding."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return visible(data).text()
    return visible(data, "utf-8").text()


def _spine(package: Any, folder: str) -> list[str]:
    manifest, spine = child(package, "manifest"), child(package, "spine")
    items = {attribute(each, "id"): each for each in (() if manifest is None else manifest)}
    order = [items.get(attribute(each, "idref")) for each in (() if spine is None else spine)]
    found = [each for each in order if each is not None and attribute(each, "media-type") in PAGES]
    links = [unquote(attribute(each, "href").partition("#")[0]) for each in found]
    return list(dict.fromkeys(posixpath.normpath(posixpath.join(folder, link)) for link in links))


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
COMPOUND = b"\xd0\xcf\x11\xe0"


def read_sheets(data: bytes) -> Extract:
    """Return the text of a workbook. Raises Refused."""
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        blocks = [block for name in workbook.sheet_names for block in _sheet(workbook, name)]
    except CalamineError as error:
        reason = str(error)
        kind = Unsupported if "Cannot detect" in reason else Refused
        raise kind(f"a workbook that cannot be read: {reason[:200]}") from None
    return Extract(joined(blocks), XLS if data.startswith(COMPOUND) else XLSX)


def _sheet(workbook: CalamineWorkbook, name: str) -> Iterator[str]:
    rows = workbook.get_sheet_by_name(name).iter_rows()
    text = table([[_cell_text(value) for value in row] for row in rows if any(value != "" for value in row)])
    if text:
        yield heading(name, 2)
        yield text


def _cell_text(value: str | float | bool | date | datetime | time | timedelta) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime():
            midnight = value.time() == time()
            return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
TITLES = frozenset({"title", "ctrTitle"})
UNTITLED = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
BULLETED = frozenset({"body", "obj", ""})


def read_slides(archive: Archive) -> Extract:
    """Return the text of a PPTX in the order of the slides. Raises Refused."""
    name = main_part(archive)
    targets = relations(archive, name)
    listed = child(archive.xml(name), "sldIdLst")
    ids = [] if listed is None else [_relation_id(each) for each in listed]
    slides = [_Slide(archive, targets[each].target) for each in ids if each in targets]
    blocks = (block for slide in slides for block in (PAGE_BREAK, *slide.blocks()))
    text, places = paged(joined(blocks), first=0)
    title = next((slide.title for slide in slides if slide.title), "")
    return Extract(text, PPTX, title=title, places=places[1:])


@dataclass(slots=True)
class _Slide:
    archive: Archive
    name: str
    title: str = ""

    def blocks(self) -> Iterator[str]:
        """Yield the title, everything else on the slide, then the speaker notes."""
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
    """Yield shapes, pictures and frames in order, including those in groups and alternatives."""
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
    """Return the role of a placeholder shape in the layout; None for other shapes."""
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
