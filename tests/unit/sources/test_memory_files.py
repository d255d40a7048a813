"""Files with memories of other products: branches, times, scopes and relations."""

import json
from pathlib import Path
from typing import Any

import pytest

from conspectus.model.graph import Fact
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignRecord, LeftOut
from conspectus.settings import Settings
from conspectus.sources.memory_files import memory_files


def read(folder: Path, value: object) -> tuple[list[ForeignRecord], LeftOut]:
    path, left = folder / "export.json", LeftOut()
    path.write_text(json.dumps(value), encoding="utf-8")
    return list(memory_files([str(path)], Settings())(left)), left


def node(text: str, parent: str | None, at: float | None = None) -> dict[str, object]:
    message = {"id": text, "author": {"role": "user"}, "content": {"parts": [text]}, "create_time": at}
    return {"message": message, "parent": parent}


def memories(records: list[ForeignRecord]) -> list[NewMemory]:
    return [record.new for record in records if isinstance(record.new, NewMemory)]


@pytest.mark.parametrize("current", [{}, {"current_node": None}, {"current_node": "gone"}])
def test_a_conversation_without_a_current_node_has_the_newest_branch(
    tmp_path: Path, current: dict[str, Any]
) -> None:
    nodes = {
        "root": {"message": None, "parent": None},
        "a": node("hello", "root", 10),
        "b": node("old answer", "a", 20),
        "c": node("new answer", "a", 30),
        "d": node("thanks", "c", 40),
    }
    records, left = read(tmp_path, [{"id": "talk", "mapping": nodes, **current}])
    assert [new.text for new in memories(records)] == ["hello", "new answer", "thanks"]
    assert left.records["messages of other branches"].count == 1


def test_a_message_without_a_time_follows_the_one_before_it(tmp_path: Path) -> None:
    nodes = {"a": node("one", None, 100), "b": node("two", "a"), "c": node("three", "b", 300)}
    talk = {"id": "talk", "create_time": 50, "mapping": nodes, "current_node": "c"}
    records, _ = read(tmp_path, [talk])
    by_time = sorted(memories(records), key=lambda new: str(new.at))
    assert [new.text for new in by_time] == ["one", "two", "three"]


def test_a_conversation_that_begins_without_times_keeps_its_order(tmp_path: Path) -> None:
    nodes = {"a": node("one", None), "b": node("two", "a"), "c": node("three", "b", 300)}
    records, _ = read(tmp_path, [{"id": "talk", "mapping": nodes, "current_node": "c"}])
    assert [new.text for new in sorted(memories(records), key=lambda new: str(new.at))] == [
        "one",
        "two",
        "three",
    ]


def test_a_user_of_mem0_may_be_a_number(tmp_path: Path) -> None:
    entries = [
        {"id": "1", "memory": "Likes tea", "user_id": 42},
        {"id": "2", "memory": "Likes milk", "user_id": ["ann"]},
    ]
    records, left = read(tmp_path, {"results": entries})
    assert [record.place for record in records] == [Scope("42")]
    assert left.records["memories whose user, agent or run is no name"].names == ("2",)


def test_relations_of_mem0_are_memories_with_facts(tmp_path: Path) -> None:
    value = {
        "results": [{"id": "1", "memory": "Likes tea", "user_id": "ann"}],
        "relations": [
            {"source": "ann", "relationship": "works_at", "target": "rede"},
            {"source": "bob", "relationship": "knows", "destination": "ann", "user_id": "bob"},
            {"source": "ann", "relationship": "knows"},
        ],
    }
    records, left = read(tmp_path, value)
    assert [
        (record.place, new.fact) for record, new in zip(records[1:], memories(records)[1:], strict=True)
    ] == [
        (Scope("ann"), Fact("ann", "works_at", "rede", single=False)),
        (Scope("bob"), Fact("bob", "knows", "ann", single=False)),
    ]
    assert left.records["relations without both ends and a type"].count == 1


def test_relations_of_nobody_in_particular_are_skipped(tmp_path: Path) -> None:
    value = {
        "results": [{"id": name, "memory": "Likes tea", "user_id": name} for name in ("ann", "bob")],
        "relations": [{"source": "ann", "relationship": "works_at", "target": "rede"}],
    }
    records, left = read(tmp_path, value)
    assert len(records) == 2
    assert left.records["relations of which the file does not say whose they are"].count == 1
