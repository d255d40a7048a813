"""Readers of files with memories: Markdown, the MCP memory server, mem0, ChatGPT, Claude and Letta."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.graph import Fact
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignReader, ForeignRecord, LeftOut
from conspectus.settings import Settings
from conspectus.sources.chats.export_files import Export, ExportFile, open_export
from conspectus.sources.foreign_stores import Point, mem0_record, mem0_scope
from conspectus.sources.json_values import (
    EMPTY,
    Notices,
    NotJson,
    as_mapping,
    items,
    load,
    load_json,
    mappings,
    moment_in,
    text_in,
    word_in,
)
from conspectus.text.hashing import content_hash
from conspectus.text.positions import find_markdown_headings, path_of

MARKDOWN: Final = (".md", ".markdown", ".mdc")
JSON: Final = (".json", ".jsonl", ".ndjson", ".af")
NAMES: Final = frozenset({"agents.md", "claude.md", "claude.local.md", "gemini.md", "memory.md"})
FOLDERS: Final = frozenset({"memory", "memories", "rules"})
"""Names of memory files anywhere, and of folders in which all Markdown files are memories."""
ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant"}
HASHED: Final = 16
TICK: Final = timedelta(microseconds=1)
BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)
MEM0_ENDS: Final = (("source", "subject"), ("relationship", "relation"), ("target", "destination", "object"))
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^([A-Za-z][\w-]*):[ \t]+(\S.*)$", re.MULTILINE)
ReadValue: TypeAlias = Callable[[object, str, LeftOut], Iterator[ForeignRecord]]


def memory_files(paths: Iterable[str], settings: Settings) -> ForeignReader:
    """Return the reader of files, folders and ZIP archives, within the limits of the settings."""
    return partial(_read, tuple(map(Path, paths)), settings)


def _read(paths: Iterable[Path], settings: Settings, left: LeftOut) -> Iterator[ForeignRecord]:
    for path in paths:
        notices = Notices()
        with open_export(path, settings, notices) as export:
            for part in export.parts:
                yield from _part(export, part, path.resolve(), left)
        for sentence in notices.sentences():
            left.remark(sentence)


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
        if base.endswith(MARKDOWN):
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
    try:
        value = load(text)
    except NotJson:
        value = [load_json(line) for line in text.split("\n") if line.strip()]
    if isinstance(value, dict) and "type" in value:
        value = [value]
    read = _reader_of(value)
    if read is None:
        left.skip("files in no known format", name)
    else:
        yield from read(value, name, left)


def _reader_of(value: object) -> ReadValue | None:
    """Return the reader of a format, told by the fields of the whole value, or of any of its entries."""
    top, entries = as_mapping(value), list(mappings(value))
    if any(entry.get("type") in {"entity", "relation"} for entry in entries):
        return _graph
    if isinstance(top.get("agents"), list) and isinstance(top.get("blocks"), list):
        return _letta
    records = list(mappings(top.get("results"))) or entries
    if any(record.get("memory") is not None and record.get("id") is not None for record in records):
        return _mem0
    if any(isinstance(record.get("mapping"), dict) for record in records):
        return _chatgpt
    return _claude if any(isinstance(record.get("chat_messages"), list) for record in records) else None


def _members(value: object, reason: str, name: str, left: LeftOut) -> Iterator[Mapping[str, object]]:
    """Yield the objects of an array; other members are counted."""
    for number, member in enumerate(items(value), 1):
        if isinstance(member, dict):
            yield member
        else:
            left.skip(reason, f"{name}:{number}")


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
        key = f"{name}/{content_hash(text)[:HASHED]}"
        metadata = {"entity_type": kind} if kind else {}
        new = NewMemory(text, key=key, entities=(name,) if name else (), metadata=metadata)
        yield ForeignRecord(Scope(), new)


def _mem0(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the answer of mem0's `get_all`: a relation is a memory with a fact."""
    scopes: set[Scope] = set()
    for memory in _members(
        as_mapping(value).get("results") or value, "entries that are no memories", name, left
    ):
        record = mem0_record(Point(word_in(memory, "id"), memory), left)
        if record is not None:
            scopes |= {record.place} if isinstance(record.place, Scope) else set()
            yield record
    relations = as_mapping(value).get("relations")
    for relation in _members(relations, "relations without both ends and a type", name, left):
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


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation; `key` may be empty."""

    key: str
    role: str
    text: str
    at: datetime | None


def _turns(
    turns: Iterable[Turn], scope: Scope, title: str, left: LeftOut, *, began: datetime | None = None
) -> Iterator[ForeignRecord]:
    """Return the messages of users and assistants as turns. One without a time follows the one before it."""
    listed_turns = list(turns)
    for turn, at in zip(listed_turns, _times_of(listed_turns, began), strict=True):
        key = turn.key or content_hash(f"{turn.at} {turn.role} {turn.text}")[:HASHED]
        if turn.role not in ROLES:
            left.skip("messages that are neither of a user nor of an assistant", key)
        elif not turn.text.strip():
            left.skip("messages without text", key)
        else:
            metadata = {"title": title} if title else {}
            new = NewMemory(turn.text, key=key, role=ROLES[turn.role], at=at, metadata=metadata)
            yield ForeignRecord(scope, new, at, at)


def _times_of(turns: Sequence[Turn], began: datetime | None) -> list[datetime | None]:
    """Return times that keep the order of messages, as far as any time of the conversation is known."""
    first_time = next((turn.at for turn in turns if turn.at is not None), None)
    leading = next((number for number, turn in enumerate(turns) if turn.at is not None), len(turns))
    latest = (
        began
        if first_time is None or (began is not None and began < first_time)
        else first_time - leading * TICK
    )
    times: list[datetime | None] = []
    for turn in turns:
        if turn.at is not None:
            latest = turn.at
        times.append(latest)
        latest = None if latest is None else latest + TICK
    return times


def _chatgpt(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read `conversations.json` of ChatGPT: the branch of each conversation that ends at its current node.

    Without a current node, it is the branch of the newest message.
    """
    for talk in _members(value, "entries that are no conversations", name, left):
        scope = Scope(conversation=word_in(talk, "conversation_id", "id") or None)
        nodes = as_mapping(talk.get("mapping"))
        if not nodes:
            left.skip("conversations without messages", scope.conversation or name)
        branch: dict[str, object] = {}
        current = text_in(talk, "current_node")
        if current not in nodes:
            current = _newest_node(nodes)
        while current in nodes and current not in branch:
            branch[current] = as_mapping(nodes[current]).get("message")
            current = text_in(nodes[current], "parent")
        others = [
            node for key, node in nodes.items() if key not in branch and as_mapping(node).get("message")
        ]
        if others:
            left.skip("messages of other branches", scope.conversation or name, len(others))
        if broken := [node for node in nodes.values() if not isinstance(node, dict)]:
            left.skip("messages that cannot be read", scope.conversation or name, len(broken))
        stated = [message for message in reversed(branch.values()) if message]
        messages = _members(stated, "messages that cannot be read", scope.conversation or name, left)
        turns = (_chatgpt_turn(message, left) for message in messages)
        began = moment_in(talk, "create_time")
        yield from _turns(turns, scope, text_in(talk, "title"), left, began=began)


def _newest_node(nodes: Mapping[str, object]) -> str:
    """Return the last node with the newest message."""
    newest, latest = "", BEFORE_ALL
    for key, node in nodes.items():
        message = as_mapping(node).get("message")
        moment = moment_in(message, "create_time") or BEFORE_ALL
        if isinstance(message, dict) and moment >= latest:
            newest, latest = key, moment
    return newest


def _chatgpt_turn(message: Mapping[str, object], left: LeftOut) -> Turn:
    content = as_mapping(message.get("content"))
    parts = items(content.get("parts")) or [content.get("text") or ""]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        left.field("images and files", len(parts) - len(texts))
    role = text_in(message.get("author"), "role")
    return Turn(text_in(message, "id"), role, "\n".join(texts), moment_in(message, "create_time"))


def _claude(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read `conversations.json` of Claude."""
    for talk in _members(value, "entries that are no conversations", name, left):
        scope = Scope(conversation=text_in(talk, "uuid") or None)
        if text_in(talk, "summary"):
            left.field("summaries of conversations")
        messages = items(talk.get("chat_messages"))
        if not messages:
            left.skip("conversations without messages", scope.conversation or name)
        readable = _members(messages, "messages that cannot be read", scope.conversation or name, left)
        turns = (_claude_turn(message, left) for message in readable)
        yield from _turns(turns, scope, text_in(talk, "name"), left, began=moment_in(talk, "created_at"))


def _claude_turn(message: Mapping[str, object], left: LeftOut) -> Turn:
    if files := [*items(message.get("attachments")), *items(message.get("files"))]:
        left.field("attachments and files", len(files))
    text = text_in(message, "text") or _joined(message.get("content"))
    return Turn(text_in(message, "uuid"), text_in(message, "sender"), text, moment_in(message, "created_at"))


def _joined(content: object) -> str:
    """Return the texts in blocks of content, or content that is text."""
    blocks = [text_in(block, "text") for block in mappings(content) if text_in(block, "type") == "text"]
    return content if isinstance(content, str) else "\n".join(filter(None, blocks))


def _letta(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read an agent file of Letta: its memory blocks as pinned notes, and its messages as turns."""
    agent_file = as_mapping(value)
    for field in ("files", "groups", "mcp_servers", "skills", "sources", "tools"):
        if count := len(items(agent_file.get(field))):
            left.field(field, count)
    unread = "memory blocks that cannot be read"
    blocks = {text_in(block, "id"): block for block in _members(agent_file["blocks"], unread, name, left)}
    agents = list(_members(agent_file["agents"], "agents that cannot be read", name, left))
    of_agents = {str(identifier) for agent in agents for identifier in items(agent.get("block_ids"))}
    for identifier in blocks.keys() - of_agents:
        left.skip("memory blocks of no agent", identifier)
    for agent in agents:
        scope = Scope(agent=text_in(agent, "name") or None)
        if text_in(agent, "system"):
            left.field("system prompts")
        for block in (blocks.get(str(identifier), EMPTY) for identifier in items(agent.get("block_ids"))):
            yield from _block(block, scope, left)
        turns = (
            Turn(
                "",
                text_in(message, "role"),
                _joined(message.get("content")),
                moment_in(message, "created_at"),
            )
            for message in _members(agent.get("messages"), "messages that cannot be read", name, left)
        )
        yield from _turns(turns, scope, "", left)


def _block(block: Mapping[str, object], scope: Scope, left: LeftOut) -> Iterator[ForeignRecord]:
    label, text = text_in(block, "label"), text_in(block, "value")
    if not text:
        left.skip("memory blocks without text", label)
        return
    metadata = {name: text_in(block, name) for name in ("label", "description") if text_in(block, name)}
    new = NewMemory(text, key=f"block/{label}", kind="note", pinned=True, metadata=metadata)
    yield ForeignRecord(scope, new)
