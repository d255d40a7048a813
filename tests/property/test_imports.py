"""Everything in a file that is imported ends as imported, as skipped with a reason, or as refused."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chat_exports import read

from conspectus.errors import ConspectusError
from conspectus.ports.imports import ForeignPlace, LeftOut
from conspectus.settings import Settings
from conspectus.sources.foreign_stores.readers import foreign_reader
from conspectus.sources.memory_files import memory_files

BROKEN: st.SearchStrategy[Any] = st.sampled_from(
    [None, 5, "x", [], {}, [{}], {"id": 1}, {"text": None}, True]
)
"""Members that are no messages, memories or conversations."""
TIMES = st.none() | st.integers(1, 2_000_000_000) | st.sampled_from(["x", {}, -1])
TEXTS = st.sampled_from(["hello", "", " ", None, 5, "two\nlines"])
SCOPES: st.SearchStrategy[Any] = st.sampled_from([None, "ann", 42, "", 1.5, [], {"a": 1}, True])
KEPT = re.compile(r", (?:skipped|kept once): ([0-9]+)")


def members(make: Callable[[int], st.SearchStrategy[Any]]) -> st.SearchStrategy[list[Any]]:
    """Lists of good members, which are made with their number, and of broken ones."""
    return (
        st.lists(st.booleans(), max_size=6)
        .flatmap(
            lambda kinds: st.tuples(*(make(number) if good else BROKEN for number, good in enumerate(kinds)))
        )
        .map(list)
    )


def chatgpt_node(number: int) -> st.SearchStrategy[Any]:
    message = st.fixed_dictionaries(
        {
            "id": st.just(f"m{number}"),
            "author": st.sampled_from([{"role": "user"}, {"role": "tool"}, {}]),
            "create_time": TIMES,
            "content": st.builds(lambda text: {"parts": [text]}, TEXTS),
        }
    )
    parent = f"n{number - 1}" if number else None
    return message.map(lambda fields: {"message": fields, "parent": parent})


def read_memories(path: Path) -> tuple[int, int]:
    """How many records of a file are imported, and how many are skipped with a reason."""
    left = LeftOut()
    imported = sum(1 for _ in memory_files([str(path)], Settings())(left))
    return imported, sum(skipped.count for skipped in left.records.values())


def write_json(folder: Path, value: object) -> Path:
    path = folder / "export.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports")


@given(members(chatgpt_node), st.sampled_from([None, "n0", "gone", 5]))
def test_every_message_of_chatgpt_is_accounted_for(folder: Path, nodes: list[Any], current: object) -> None:
    """Whatever the current node is; a node without a message is none."""
    mapping = {f"n{number}": node for number, node in enumerate(nodes)}
    talk = {"id": "talk", "create_time": 1, "mapping": mapping, "current_node": current}
    imported, skipped = read_memories(write_json(folder, [talk]))
    messages = [node for node in nodes if not isinstance(node, dict) or node.get("message")]
    assert imported + skipped == (len(messages) if nodes else 1)


def mem0_memory(number: int) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"id": st.just(f"m{number}"), "memory": TEXTS, "user_id": SCOPES, "created_at": TIMES}
    )


RELATED = st.builds(lambda end: {"source": "ann", "relationship": "likes", "target": end}, TEXTS)


@given(members(mem0_memory), st.lists(BROKEN | RELATED, max_size=4))
def test_every_memory_and_relation_of_mem0_is_accounted_for(
    folder: Path, memories: list[Any], relations: list[Any]
) -> None:
    imported, skipped = read_memories(write_json(folder, {"results": memories, "relations": relations}))
    is_recognized = any(isinstance(m, dict) and m.get("memory") is not None and m.get("id") for m in memories)
    assert imported + skipped == (len(memories) + len(relations) if is_recognized else 1)


def claude_message(number: int) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"uuid": st.just(f"m{number}"), "text": TEXTS, "sender": st.sampled_from(["human", "x", None])}
    )


@given(members(claude_message), st.lists(BROKEN, max_size=3))
def test_every_message_of_claude_is_accounted_for(
    folder: Path, messages: list[Any], others: list[Any]
) -> None:
    value = [{"uuid": "talk", "chat_messages": messages}, *others]
    imported, skipped = read_memories(write_json(folder, value))
    assert imported + skipped == max(len(messages), 1) + len(others)


def letta_block(number: int) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"id": st.just(f"b{number}"), "label": st.just("l"), "value": TEXTS})


@given(members(letta_block), members(claude_message), st.lists(st.integers(0, 5), unique=True))
def test_every_block_and_message_of_letta_is_accounted_for(
    folder: Path, blocks: list[Any], messages: list[Any], used: list[int]
) -> None:
    stated = [{**block, "id": f"b{number}"} if isinstance(block, dict) else block
              for number, block in enumerate(blocks)]  # fmt: skip
    numbers = [number for number in used if number < len(stated) and isinstance(stated[number], dict)]
    agent = {"name": "a", "block_ids": [f"b{number}" for number in numbers], "messages": messages}
    imported, skipped = read_memories(write_json(folder, {"agents": [agent], "blocks": stated}))
    assert imported + skipped == len(stated) + len(messages)


@given(
    st.lists(
        st.sampled_from(["5", "null", "not JSON", "[]", '{"memory": "hello"}', '"text"', ""]), max_size=6
    )
)
def test_every_item_of_langgraph_is_accounted_for(folder: Path, values: list[str]) -> None:
    path = folder / "store.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE store (prefix, key, value, created_at, updated_at)")
        rows = [("ann", str(number), value, "2024-01-05", None) for number, value in enumerate(values)]
        database.executemany("INSERT INTO store VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    left = LeftOut()
    imported = sum(1 for _ in foreign_reader("langgraph", ForeignPlace(str(path)))(left))
    assert imported == values.count('{"memory": "hello"}')
    assert imported + sum(skipped.count for skipped in left.records.values()) == len(values)


def slack_message(number: int) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from([None, "channel_join", "tombstone", "bot_message"])
    return st.builds(
        lambda text, kind: {"type": "message", "ts": f"{number + 1}.000000", "text": text, "subtype": kind},
        TEXTS,
        kinds,
    )


def count_chat(path: Path, kind: Any) -> int | None:
    """How many members of an archive are imported or skipped with a reason; None if it is refused."""
    try:
        archive = read(path, kind)
    except ConspectusError:
        return None
    notices = [notice for notice in archive.notices if not notice.startswith("channels")]
    skipped = sum(int(match[1]) for match in map(KEPT.search, notices) if match)
    return skipped + sum(len(channel.messages) for channel in archive.channels)


@given(members(slack_message))
def test_every_entry_of_slack_is_accounted_for(folder: Path, entries: list[Any]) -> None:
    export = folder / "slack" / "general"
    export.mkdir(parents=True, exist_ok=True)
    (export / "2024-01-05.json").write_text(json.dumps(entries), encoding="utf-8")
    counted = count_chat(export.parent, "slack")
    assert counted in {None, len(entries)}


def discord_message(number: int) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["Default", "GuildMemberJoin", "Reply"])
    return st.builds(lambda text, kind: {"id": str(number), "type": kind, "content": text}, TEXTS, kinds)


@given(members(discord_message))
def test_every_message_of_discord_is_accounted_for(folder: Path, messages: list[Any]) -> None:
    path = folder / "discord.json"
    path.write_text(json.dumps({"channel": {"id": "1", "name": "a"}, "messages": messages}), encoding="utf-8")
    assert count_chat(path, "discord") in {None, len(messages)}


def line_of_jsonl(number: int) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda text, gone: {"id": str(number), "text": text, "deleted": gone}, TEXTS, st.booleans()
    )


@given(members(line_of_jsonl))
def test_every_line_of_json_lines_is_accounted_for(folder: Path, lines: list[Any]) -> None:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert count_chat(path, "jsonl") in {None, len(lines)}


def graph_element(number: int) -> st.SearchStrategy[Any]:
    entities = st.builds(
        lambda texts: {"type": "entity", "name": f"e{number}", "observations": texts},
        st.lists(TEXTS, min_size=1, max_size=1),
    )
    relations = st.builds(
        lambda end: {"type": "relation", "from": "a", "relationType": "is", "to": end}, TEXTS
    )
    return entities | relations


@given(members(graph_element))
def test_every_element_of_the_memory_server_is_accounted_for(folder: Path, elements: list[Any]) -> None:
    imported, skipped = read_memories(write_json(folder, elements))
    is_recognized = any(isinstance(element, dict) and "type" in element for element in elements)
    assert imported + skipped == (len(elements) if is_recognized else 1)


NOTES = st.dictionaries(
    st.sampled_from(["AGENTS.md", "notes.md", "memory/a.md", "rules/b.mdc", "c.txt", "sub/CLAUDE.md"]),
    st.sampled_from(
        ["", "# Only a heading", "# Tea\n\nAnn likes tea.", "Bare.", "---\na: b\n---\n", "# A\n# B\nb"]
    ),
)


@given(NOTES)
def test_every_file_of_a_folder_of_notes_is_accounted_for(folder: Path, notes: dict[str, str]) -> None:
    root = folder / "notes"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, text in notes.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    left = LeftOut()
    files = {str(record.new.metadata["file"]) for record in memory_files([str(root)], Settings())(left)}
    assert len(files) + sum(skipped.count for skipped in left.records.values()) == len(notes)


LINES = st.sampled_from(
    ["[10:00] <ann> hello", "[10:00] *** Joins: ann (a@b)", "no line of a log", "[10:00] <ann>  ", "???"]
)


@given(st.lists(LINES, max_size=6))
def test_every_line_of_irc_is_accounted_for(folder: Path, lines: list[str]) -> None:
    path = folder / "#dev.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert count_chat(path, "irc") in {None, len(lines)}
