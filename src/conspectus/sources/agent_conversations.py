"""Readers of exported conversations with agents: ChatGPT, Claude and Letta."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignRecord, LeftOut
from conspectus.sources.json_values import (
    EMPTY,
    as_mapping,
    items,
    mappings,
    members,
    moment_in,
    text_in,
    word_in,
)
from conspectus.text.hashing import content_hash

ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant"}
HASH_CHARACTERS: Final = 16
SHORTEST_TIME: Final = timedelta(microseconds=1)
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation; `key` may be empty."""

    key: str
    role: str
    text: str
    at: datetime | None


def _turn_records(
    turns: Iterable[Turn], scope: Scope, title: str, left: LeftOut, *, began: datetime | None = None
) -> Iterator[ForeignRecord]:
    """Return the messages of users and assistants as turns. One without a time follows the one before it."""
    listed_turns = list(turns)
    for turn, at in zip(listed_turns, _times_of(listed_turns, began), strict=True):
        key = turn.key or content_hash(f"{turn.at} {turn.role} {turn.text}")[:HASH_CHARACTERS]
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
        else first_time - leading * SHORTEST_TIME
    )
    times: list[datetime | None] = []
    for turn in turns:
        if turn.at is not None:
            latest = turn.at
        times.append(latest)
        latest = None if latest is None else latest + SHORTEST_TIME
    return times


def read_chatgpt(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read `conversations.json` of ChatGPT: the branch of each conversation that ends at its current node.

    Without a current node, it is the branch of the newest message.
    """
    for talk in members(value, "entries that are no conversations", name, left):
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
        messages = members(stated, "messages that cannot be read", scope.conversation or name, left)
        turns = (_chatgpt_turn(message, left) for message in messages)
        began = moment_in(talk, "create_time")
        yield from _turn_records(turns, scope, text_in(talk, "title"), left, began=began)


def _newest_node(nodes: Mapping[str, object]) -> str:
    """Return the last node with the newest message."""
    newest, latest = "", EARLIEST
    for key, node in nodes.items():
        message = as_mapping(node).get("message")
        moment = moment_in(message, "create_time") or EARLIEST
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


def read_claude(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read `conversations.json` of Claude."""
    for talk in members(value, "entries that are no conversations", name, left):
        scope = Scope(conversation=text_in(talk, "uuid") or None)
        if text_in(talk, "summary"):
            left.field("summaries of conversations")
        messages = items(talk.get("chat_messages"))
        if not messages:
            left.skip("conversations without messages", scope.conversation or name)
        readable = members(messages, "messages that cannot be read", scope.conversation or name, left)
        turns = (_claude_turn(message, left) for message in readable)
        yield from _turn_records(
            turns, scope, text_in(talk, "name"), left, began=moment_in(talk, "created_at")
        )


def _claude_turn(message: Mapping[str, object], left: LeftOut) -> Turn:
    if files := [*items(message.get("attachments")), *items(message.get("files"))]:
        left.field("attachments and files", len(files))
    text = text_in(message, "text") or _text_of_blocks(message.get("content"))
    return Turn(text_in(message, "uuid"), text_in(message, "sender"), text, moment_in(message, "created_at"))


def _text_of_blocks(content: object) -> str:
    """Return the texts in blocks of content, or content that is text."""
    blocks = [text_in(block, "text") for block in mappings(content) if text_in(block, "type") == "text"]
    return content if isinstance(content, str) else "\n".join(filter(None, blocks))


def read_letta(value: object, name: str, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read an agent file of Letta: its memory blocks as pinned notes, and its messages as turns."""
    agent_file = as_mapping(value)
    for field in ("files", "groups", "mcp_servers", "skills", "sources", "tools"):
        if count := len(items(agent_file.get(field))):
            left.field(field, count)
    unread = "memory blocks that cannot be read"
    blocks = {text_in(block, "id"): block for block in members(agent_file["blocks"], unread, name, left)}
    agents = list(members(agent_file["agents"], "agents that cannot be read", name, left))
    of_agents = {str(identifier) for agent in agents for identifier in items(agent.get("block_ids"))}
    for identifier in blocks.keys() - of_agents:
        left.skip("memory blocks of no agent", identifier)
    for agent in agents:
        scope = Scope(agent=text_in(agent, "name") or None)
        if text_in(agent, "system"):
            left.field("system prompts")
        for block in (blocks.get(str(identifier), EMPTY) for identifier in items(agent.get("block_ids"))):
            yield from _note_of_block(block, scope, left)
        turns = (
            Turn(
                "",
                text_in(message, "role"),
                _text_of_blocks(message.get("content")),
                moment_in(message, "created_at"),
            )
            for message in members(agent.get("messages"), "messages that cannot be read", name, left)
        )
        yield from _turn_records(turns, scope, "", left)


def _note_of_block(block: Mapping[str, object], scope: Scope, left: LeftOut) -> Iterator[ForeignRecord]:
    label, text = text_in(block, "label"), text_in(block, "value")
    if not text:
        left.skip("memory blocks without text", label)
        return
    metadata = {name: text_in(block, name) for name in ("label", "description") if text_in(block, name)}
    new = NewMemory(text, key=f"block/{label}", kind="note", pinned=True, metadata=metadata)
    yield ForeignRecord(scope, new)
