"""Readers of files with memories: Markdown, the MCP memory server, mem0, ChatGPT, Claude and Letta."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from conspectus.model.graph import Fact
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignReader, ForeignRecord, LeftOut
from conspectus.settings import Settings
from conspectus.sources.agent_conversations import read_chatgpt, read_claude, read_letta
from conspectus.sources.chats.export_files import Export, ExportFile, open_export
from conspectus.sources.foreign_stores.mem0 import mem0_record, mem0_scope
from conspectus.sources.foreign_stores.points import Point
from conspectus.sources.json_values import (
    NotJson,
    as_mapping,
    items,
    load,
    load_json,
    mappings,
    members,
    text_in,
    word_in,
)
from conspectus.sources.notices import Notices
from conspectus.sources.plain_text import looks_binary
from conspectus.text.hashing import content_hash
from conspectus.text.positions import find_markdown_headings, path_of

MARKDOWN: Final = (".md", ".markdown", ".mdc")
JSON: Final = (".json", ".jsonl", ".ndjson", ".af")
NAMES: Final = frozenset({"agents.md", "claude.md", "claude.local.md", "gemini.md", "memory.md"})
FOLDERS: Final = frozenset({"memory", "memories", "rules"})
"""Names of memory files anywhere, and of folders in which all Markdown files are memories."""
HASH_CHARACTERS: Final = 16
MEM0_ENDS: Final = (("source", "subject"), ("relationship", "relation"), ("target", "destination", "object"))
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^([A-Za-z][\w-]*):[ \t]+(\S.*)$", re.MULTILINE)
_MARKS: Final = ('"entity"', '"relation"', '"blocks"', '"memory"', '"mapping"', '"chat_messages"')
"""Texts of which each format in JSON has one."""
ReadValue: TypeAlias = Callable[[object, str, LeftOut], Iterator[ForeignRecord]]


def memory_files(paths: Iterable[str], settings: Settings) -> ForeignReader:
    """Return the reader of files, folders and ZIP archives, within the limits of the settings."""
    return partial(_read, tuple(map(Path, paths)), settings)


def has_memories(text: str, name: str) -> bool:
    """Return whether a file of JSON is an export in which a memory or a turn is found.

    A list of objects with an id and a `memory` is one of mem0 only if it says whose memories they are.
    """
    if not any(mark in text for mark in _MARKS):
        return False
    value = _load(text)
    read = _reader_of(value)
    records = () if read is None else read(value, name, LeftOut())
    return any(read is not _mem0 or record.place != Scope() for record in records)


def _read(paths: Iterable[Path], settings: Settings, left: LeftOut) -> Iterator[ForeignRecord]:
    for path in paths:
        notices = Notices()
        with open_export(path, settings, notices) as export:
            for part in export.parts:
                yield from _part(export, part, path.resolve(), left)
        for reason, count, names in notices.reasons():
            for name in names:
                left.skip(reason.removesuffix(", skipped"), name)
            left.skip(reason.removesuffix(", skipped"), "", count - len(names))


def _part(export: Export, part: ExportFile, path: Path, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read one file. Its name begins with that of the folder."""
    base = part.base.lower()
    root = path if path.is_dir() else path.parent
    name = f"{root.name}/{part.name}"
    if base.endswith(MARKDOWN) and not (path.is_file() or _is_memory(export, part, root.name)):
        left.skip("Markdown files that are no memory files", name)
    elif not base.endswith((*MARKDOWN, *JSON)):
        left.skip("files of other kinds", name)
    elif (decoded := export.text(part)) is not None:
        if looks_binary(decoded.text):
            left.skip("files of binary data", name)
        elif base.endswith(MARKDOWN):
            sections = list(_sections(decoded.text, name))
            if not sections:
                left.skip("Markdown files without text", name)
            yield from sections
        else:
            yield from _json(decoded.text, name, left)


def _is_memory(export: Export, part: ExportFile, root: str) -> bool:
    """Return whether a Markdown file is known by its name, its folder, or a MEMORY.md beside it."""
    folder = part.folder.rpartition("/")[2] or root
    index = f"{part.folder}/MEMORY.md".removeprefix("/")
    has_index = any(part.name == index for part in export.parts)
    return part.base.lower() in NAMES or folder.lower() in FOLDERS or has_index


def _sections(text: str, name: str) -> Iterator[ForeignRecord]:
    """Read a note for each section that has more than a heading, with the front matter as metadata."""
    front = _FRONT.match(text)
    fields = dict(_FIELD.findall(front[1])) if front else {}
    places = list(find_markdown_headings(text))
    starts = [front.end() if front else 0, *(heading.start for heading in places)]
    paths = [None, *(path_of(heading.headings) for heading in places)]
    seen: dict[str, int] = {}
    for number, (start, path) in enumerate(zip(starts, paths, strict=True)):
        section = text[start : starts[number + 1] if number < len(places) else len(text)].strip()
        if not (section if path is None else section.partition("\n")[2].strip("\n=- \t")):
            continue
        section_key = f"{name}#{path or ''}"
        seen[section_key] = seen.get(section_key, 0) + 1
        key = section_key if seen[section_key] == 1 else f"{section_key}~{seen[section_key]}"
        metadata = {**fields, "file": name, **({} if path is None else {"heading": path})}
        yield ForeignRecord(Scope(), NewMemory(section, key=key, kind="note", metadata=metadata))


def _json(text: str, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read a file of JSON, or of JSON Lines, by its content."""
    value = _load(text)
    read = _reader_of(value)
    if read is None:
        left.skip("files in no known format", name)
    else:
        yield from read(value, name, left)


def _load(text: str) -> object:
    """Return the value of JSON, or the list of those of JSON Lines."""
    try:
        value = load(text)
    except NotJson:
        value = [load_json(line) for line in text.split("\n") if line.strip()]
    return [value] if isinstance(value, dict) and "type" in value else value


def _reader_of(value: object) -> ReadValue | None:
    """Return the reader of a format, told by the fields of the whole value, or of any of its entries."""
    top, entries = as_mapping(value), list(mappings(value))
    if any(entry.get("type") in {"entity", "relation"} for entry in entries):
        return _graph
    if isinstance(top.get("agents"), list) and isinstance(top.get("blocks"), list):
        return read_letta
    records = list(mappings(top.get("results"))) or entries
    if any(record.get("memory") is not None and record.get("id") is not None for record in records):
        return _mem0
    if any(isinstance(record.get("mapping"), dict) for record in records):
        return read_chatgpt
    return read_claude if any(isinstance(record.get("chat_messages"), list) for record in records) else None


def _graph(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the graph of the MCP memory server: an observation is a memory, a relation one with a fact."""
    for number, element in enumerate(items(value), 1):
        if text_in(element, "type") == "entity":
            yield from _observations(as_mapping(element), left)
        elif text_in(element, "type") == "relation":
            one, kind, other = (text_in(element, field) for field in ("from", "relationType", "to"))
            if one and kind and other:
                fact = Fact(one, kind, other, single=False)
                yield ForeignRecord(
                    Scope(), NewMemory(f"{one} {kind} {other}", key=f"{one}/{kind}/{other}", fact=fact)
                )
            else:
                left.skip("relations without both ends and a type", f"{name}:{number}")
        else:
            left.skip("lines that are neither entities nor relations", f"{name}:{number}")


def _observations(entity: Mapping[str, object], left: LeftOut) -> Iterator[ForeignRecord]:
    name, kind = text_in(entity, "name"), text_in(entity, "entityType")
    observations = items(entity.get("observations"))
    texts = [text for text in observations if isinstance(text, str) and text.strip()]
    if not observations:
        left.skip("entities without observations", name)
    if len(texts) < len(observations):
        left.skip("observations without text", name, len(observations) - len(texts))
    for text in texts:
        key = f"{name}/{content_hash(text)[:HASH_CHARACTERS]}"
        metadata = {"entity_type": kind} if kind else {}
        new = NewMemory(text, key=key, entities=(name,) if name else (), metadata=metadata)
        yield ForeignRecord(Scope(), new)


def _mem0(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the answer of mem0's `get_all`: a relation is a memory with a fact."""
    scopes: set[Scope] = set()
    for memory in members(
        as_mapping(value).get("results") or value, "entries that are no memories", name, left
    ):
        record = mem0_record(Point(word_in(memory, "id"), memory), left)
        if record is not None:
            scopes |= {record.place} if isinstance(record.place, Scope) else set()
            yield record
    relations = as_mapping(value).get("relations")
    for relation in members(relations, "relations without both ends and a type", name, left):
        yield from _mem0_relation(relation, scopes, name, left)


def _mem0_relation(
    relation: Mapping[str, object], scopes: set[Scope], name: str, left: LeftOut
) -> Iterator[ForeignRecord]:
    """Read a relation, which belongs to the user that it names, else to that of all memories."""
    ends = [text_in(relation, *names) for names in MEM0_ENDS]
    scope = mem0_scope(relation)
    if scope in {None, Scope()}:
        scope = next(iter(scopes), Scope()) if len(scopes) < 2 else None
    subject, kind, target = ends
    if not all(ends):
        left.skip("relations without both ends and a type", name)
    elif scope is None:
        left.skip("relations of which the file does not say whose they are", f"{subject} {kind} {target}")
    else:
        fact = Fact(subject, kind, target, single=False)
        key = f"{subject}/{kind}/{target}"
        yield ForeignRecord(scope, NewMemory(f"{subject} {kind} {target}", key=key, fact=fact))
