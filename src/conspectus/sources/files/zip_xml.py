"""XML in ZIP archives, read within limits."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from lxml import etree

from conspectus.deferred import dataclass
from conspectus.sources.files.extract import Oversized, Refused, escape_markdown, format_list_item, one_line
from conspectus.sources.files.tables import render_table
from conspectus.text.zips import DAMAGED

ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
MAX_PARTS = 20_000
FAULTS = (*DAMAGED, OSError)
_CHART_KIND = re.compile(r"(area|bar|bubble|doughnut|line|pie|radar|scatter|stock|surface)(?:3D)?Chart")
_LONG_DECIMAL = re.compile(r"-?\d{1,20}\.\d{10,40}(?:[eE][-+]?\d{1,3})?")


class Archive:
    """The parts of a ZIP archive by name. They are unpacked on demand, up to `limit` bytes in total."""

    def __init__(self, data: bytes, limit: int) -> None:
        if not data.startswith(ZIP_MARKS) and not zipfile.is_zipfile(io.BytesIO(data)):
            raise Refused("is damaged, or of another format than its name says")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except FAULTS as error:
            raise Refused(f"a damaged ZIP archive: {error}") from None
        entries = self._zip.infolist()
        if len(entries) > MAX_PARTS:
            raise Refused(f"has {len(entries)} parts, more than {MAX_PARTS}")
        self._parts = {entry.filename.replace("\\", "/").lower(): entry for entry in entries}
        self.limit = limit
        self._left = limit

    def unread(self) -> "Archive":
        """Return the same archive with all bytes of its limit left."""
        again = copy(self)
        again._left = again.limit
        return again

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._parts

    def names(self) -> Iterator[str]:
        """The lower-case name of every part."""
        return iter(self._parts)

    def read(self, name: str) -> bytes:
        """Return the part of that name; empty if there is none. Raises Refused or Oversized."""
        entry = self._parts.get(name.lower())
        if entry is None:
            return b""
        if entry.flag_bits & 1:
            raise Refused("is encrypted with a password")
        try:
            with self._zip.open(entry) as stream:
                data = stream.read(self._left + 1)
        except FAULTS as error:
            raise Refused(f"a damaged ZIP archive: {entry.filename[:100]}: {error}") from None
        self._left -= len(data)
        if self._left < 0:
            raise Oversized(self.limit + 1, self.limit)
        return data

    def repack(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with other contents of some parts, uncompressed. Raises Refused or Oversized."""
        contents = {name.lower(): content for name, content in changed.items()}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as target:
            for name, entry in self._parts.items():
                target.writestr(entry.filename, contents[name] if name in contents else self.read(name))
        return buffer.getvalue()

    def xml(self, name: str) -> Any:
        """Return the root element of a part; an empty element if there is no such part."""
        data = self.read(name)
        return parse_xml(data, name) if data else etree.Element("none")


@dataclass(frozen=True, slots=True)
class Relation:
    """The relations of a part of an office document, by id."""

    kind: str
    target: str
    external: bool


def read_relations(archive: Archive, part: str) -> Mapping[str, Relation]:
    """Return the targets of a part's relations by id: part names, or URLs if they are external."""
    folder, name = posixpath.split(part)
    by_id = {}
    for element in archive.xml(posixpath.join(folder, "_rels", f"{name}.rels")):
        target, external = element.get("Target", ""), element.get("TargetMode") == "External"
        if not external:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        kind = element.get("Type", "").rsplit("/", 1)[-1]
        by_id[element.get("Id", "")] = Relation(kind, target, external)
    return by_id


def find_related_part(archive: Archive, part: str, kind: str) -> str:
    """Return the name of the first part of a type that a part refers to; empty if there is none."""
    return next(
        (relation.target for relation in read_relations(archive, part).values() if relation.kind == kind), ""
    )


def find_main_part(archive: Archive) -> str:
    """Return the name of an office document's main part. Raises Refused."""
    name = find_related_part(archive, "", "officeDocument")
    if name not in archive:
        raise Refused("a damaged office document: its main part is missing")
    return name


def parse_xml(data: bytes, name: str) -> Any:
    """Return the root element of XML that declares no entities. Raises Refused."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        element = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from None
        raise Refused(f"damaged XML in {name}: {error.msg}") from None
    declared = element.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise Refused(f"{name} declares entities of its own, which is not safe to read")
    return element


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; empty for other nodes."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute_of(element: Any, name: str, default: str = "") -> str:
    """Return the attribute of that name in any namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return default


def find_child(element: Any, *path: str) -> Any | None:
    """Return the first descendant along a path of names, or None."""
    for name in path:
        element = next((node for node in element if local_name(node) == name), None)
        if element is None:
            return None
    return element


def val_attribute(element: Any, *path: str) -> str | None:
    """Return the `val` attribute at the end of a path; None if there is no such element."""
    element_at_end = find_child(element, *path)
    return None if element_at_end is None else attribute_of(element_at_end, "val")


def parse_number(text: str | None, default: int = 0) -> int:
    """Return an integer of at most nine digits, or the default."""
    return int(text) if text and text.removeprefix("-").isdecimal() and len(text) < 10 else default


def paragraphs_of(element: Any) -> str:
    """Return the paragraphs of a shape, a cell or a title, one per line."""
    return "\n".join(line_of(node) for node in element.iter() if local_name(node) == "p").strip()


def line_of(paragraph: Any) -> str:
    """Return the text of one paragraph."""
    marks = {"br": "\n", "tab": " "}
    parts = ((local_name(node), node) for node in paragraph.iter())
    return "".join((node.text or "") if name == "t" else marks.get(name, "") for name, node in parts)


def read_chart(part: Any) -> Iterator[str]:
    """Return a chart as its titles, its kind and a table: a row for a category, a column for a series."""
    titles = (node for node in part.iter() if local_name(node) == "title")
    yield from (escape_markdown(one_line(paragraphs_of(title))) for title in titles)
    kinds = dict.fromkeys(
        kind[1] for node in part.iter() if (kind := _CHART_KIND.fullmatch(local_name(node)))
    )
    yield f"{' and '.join(kinds).capitalize()} chart" if kinds else ""
    series = [node for node in part.iter() if local_name(node) == "ser"]
    names = [" ".join(_values(find_child(one_series, "tx"))) for one_series in series]
    categories = next(
        (texts for one_series in series if (texts := _values(_first(one_series, "cat", "xVal")))), []
    )
    columns = [_values(_first(one_series, "val", "yVal")) for one_series in series]
    height = max(map(len, [categories, *columns]), default=0)
    filled = [[*column, *[""] * height][:height] for column in (categories, *columns)]
    yield render_table([["", *names], *map(list, zip(*filled, strict=True))])


def read_diagram(part: Any) -> Iterator[str]:
    """Return the texts of a diagram as a list."""
    return (format_list_item(line_of(node), 0) for node in part.iter() if local_name(node) == "p")


def _first(element: Any, *names: str) -> Any | None:
    return next((descendant for name in names if (descendant := find_child(element, name)) is not None), None)


def _values(element: Any | None) -> list[str]:
    nodes = () if element is None else element.iter()
    return [_shorten_double(node.text or "") for node in nodes if local_name(node) == "v"]


def _shorten_double(value: str) -> str:
    """Return a number as it is shown: a double that is stored as 4.4000000000000004 is 4.4."""
    return f"{float(value):.15g}" if _LONG_DECIMAL.fullmatch(value) else value
