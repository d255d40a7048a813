"""Imports of files with memories: what each becomes, and that a second run adds nothing."""

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Shell

PEOPLE = [
    {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["Likes tea", "Has a cat"]},
    {"type": "entity", "name": "Köln", "entityType": "city", "observations": []},
    {"type": "relation", "from": "Ann", "to": "Köln", "relationType": "lives_in"},
    {"type": "relation", "from": "Ann", "relationType": "lives_in"},
    {"type": "note"},
]
EXPORTED = {
    "results": [
        {
            "id": "m1", "memory": "Ann likes tea.", "user_id": "ann", "run_id": "monday", "hash": "x",
            "metadata": {"stars": 4}, "categories": ["food"],
            "created_at": "2026-03-01T10:00:00-08:00", "updated_at": "2026-03-02T10:00:00-08:00",
        },
        {"id": "m2", "memory": " ", "user_id": "ann"},
    ]
}  # fmt: skip
CHATGPT = [
    {
        "id": "c1", "title": "Trains", "create_time": 1_700_000_000.0, "current_node": "d",
        "mapping": {
            "a": {"id": "a", "message": None, "parent": None},
            "b": {"parent": "a", "message": {"id": "b", "author": {"role": "system"}}},
            "c": {"parent": "b", "message": {
                "id": "c", "author": {"role": "user"}, "create_time": 1_700_000_001.5,
                "content": {"parts": ["When is the train?", {"asset_pointer": "file"}]}}},
            "d": {"parent": "c", "message": {
                "id": "d", "author": {"role": "assistant"}, "create_time": 1_700_000_002.5,
                "content": {"parts": ["At nine."]}}},
            "e": {"parent": "c", "message": {
                "id": "e", "author": {"role": "assistant"}, "content": {"parts": ["At ten."]}}},
        },
    }
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "c2", "name": "Boats", "summary": "About boats.", "chat_messages": [
            {"uuid": "m", "sender": "human", "text": "Which boat?", "created_at": "2026-02-14T10:00:00Z",
             "attachments": [{"file_name": "a.txt"}]},
            {"uuid": "n", "sender": "assistant", "text": "", "created_at": "2026-02-14T10:00:01Z",
             "content": [{"type": "text", "text": "The red one."}]},
        ],
    }
]  # fmt: skip
LETTA = {
    "agents": [
        {
            "name": "Bot", "system": "You are.", "block_ids": ["block-0", "block-1"],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hello."}],
                 "created_at": "2026-03-02T23:57:10+00:00"},
                {"role": "tool", "content": [{"type": "text", "text": "{}"}]},
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Ann is a doctor.", "description": "Who it is."},
        {"id": "block-1", "label": "persona", "value": ""},
    ],
    "tools": [{"name": "search"}],
}  # fmt: skip


def list_memories(shell: Shell, *scope: str) -> dict[str, dict[str, Any]]:
    """The memories of a scope by their text."""
    memories = shell("memory", "list", *scope, "--json").json["memories"]
    return {memory["text"]: memory for memory in memories}


def import_files(shell: Shell, path: Path, *options: str) -> dict[str, Any]:
    """The report of an import, which a second one adds nothing to."""
    done = shell("import", "memory-formats", path, *options, "--json")
    again = shell("import", "memory-formats", path, *options, "--json").json
    assert (done.code, again["added"], again["unchanged"]) == (0, 0, done.json["added"]), done.err
    return dict(done.json)


def write_file(shell: Shell, name: str, value: object) -> Path:
    path = shell.folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def skipped_counts(report: dict[str, Any]) -> dict[str, int]:
    return {reason: skipped["count"] for reason, skipped in report["skipped"].items()}


def test_sections_of_memory_files_become_notes_and_other_files_are_named(shell: Shell) -> None:
    folder = shell.folder / "project"
    (folder / "memory").mkdir(parents=True)
    (folder / "CLAUDE.md").write_text("# Rules\n\n## Build\n\nUse make.\n\n## Build\n\nTwice.\n", "utf-8")
    topic = "---\nname: style\nnested:\n  x: 1\n---\nShort sentences.\n"
    (folder / "memory" / "style.md").write_text(topic, "utf-8")
    (folder / "README.md").write_text("# About\n\nA project.\n", "utf-8")
    (folder / "main.py").write_text("print()", "utf-8")
    report = import_files(shell, folder, "--agent", "project")
    assert skipped_counts(report) == {"Markdown files that are no memory files": 1, "files of other kinds": 1}
    memories = list_memories(shell, "--agent", "project")
    assert set(memories) == {"## Build\n\nUse make.", "## Build\n\nTwice.", "Short sentences."}
    assert {memory["kind"] for memory in memories.values()} == {"note"}
    assert memories["Short sentences."]["metadata"] == {"name": "style", "file": "project/memory/style.md"}
    keys = {memory["document"]["key"] for memory in memories.values()}
    assert "project/CLAUDE.md#Rules > Build~2" in keys


def test_files_that_cannot_be_read_are_counted_as_skipped_and_named(shell: Shell) -> None:
    folder = shell.folder / "rules"
    folder.mkdir()
    (folder / "style.md").write_text("Short sentences.\n", "utf-8")
    for number in range(7):
        (folder / f"{number}.md").write_bytes(bytes(range(256)) * 10)
    (folder / "linked.md").symlink_to(folder / "style.md")
    report = import_files(shell, folder, "--agent", "project")
    assert skipped_counts(report) == {"files of binary data": 7, "links": 1}
    assert report["skipped"]["files of binary data"]["names"] == [f"rules/{number}.md" for number in range(5)]
    assert (report["read"], report["added"], report["remarks"]) == (9, 1, {})
    done = shell("import", "memory-formats", folder, "--agent", "project")
    assert "9 read: 0 added, 0 replaced, 0 updated, 1 unchanged, 8 skipped" in done.out


def test_a_changed_section_is_a_new_version(shell: Shell) -> None:
    path = write_file(shell, "AGENTS.md", "# Style\n\nLong sentences.\n")
    import_files(shell, path)
    path.write_text("# Style\n\nShort sentences.\n", "utf-8")
    assert shell("import", "memory-formats", path, "--json").json["replaced"] == 1
    [memory] = list_memories(shell).values()
    versions = shell("memory", "versions", memory["id"], "--json").json
    assert [version["text"] for version in versions] == [
        "# Style\n\nLong sentences.",
        "# Style\n\nShort sentences.",
    ]


def test_a_graph_of_the_mcp_memory_server_becomes_memories_and_facts(shell: Shell) -> None:
    path = write_file(shell, "memory.jsonl", "\n".join(map(json.dumps, PEOPLE)) + "\nnot JSON\n")
    report = import_files(shell, path, "--user", "ann")
    assert skipped_counts(report) == {
        "entities without observations": 1,
        "relations without both ends and a type": 1,
        "lines that are neither entities nor relations": 2,
    }
    memories = list_memories(shell, "--user", "ann")
    assert memories["Likes tea"]["entities"] == ["Ann"]
    assert memories["Likes tea"]["metadata"] == {"entity_type": "person"}
    assert memories["Ann lives_in Köln"]["fact"]["object"] == "Köln"


def test_an_export_of_mem0_keeps_its_times(shell: Shell) -> None:
    report = import_files(shell, write_file(shell, "export.json", EXPORTED))
    assert (report["read"], report["added"], report["no_place"]) == (2, 1, {"hash": 1})
    [memory] = list_memories(shell, "--user", "ann").values()
    assert memory["metadata"] == {"stars": 4, "categories": ["food"]}
    assert memory["known_from"] == "2026-03-02T18:00:00+00:00"
    assert memory["document"]["recorded"] == "2026-03-01T18:00:00+00:00"
    assert memory["scope"]["conversation"] == "monday"


def test_the_current_branch_of_a_chat_becomes_turns_of_a_conversation(shell: Shell) -> None:
    report = import_files(shell, write_file(shell, "conversations.json", CHATGPT), "--user", "ann")
    assert skipped_counts(report) == {
        "messages of other branches": 1,
        "messages that are neither of a user nor of an assistant": 1,
    }
    assert report["no_place"] == {"images and files": 1}
    memories = list_memories(shell, "--user", "ann", "--conversation", "c1")
    assert {text: memory["document"]["role"] for text, memory in memories.items()} == {
        "When is the train?": "user",
        "At nine.": "assistant",
    }
    assert memories["At nine."]["known_from"] == "2023-11-14T22:13:22.500000+00:00"
    assert memories["At nine."]["metadata"] == {"title": "Trains"}


def test_chats_of_claude_become_turns(shell: Shell) -> None:
    report = import_files(shell, write_file(shell, "conversations.json", CLAUDE))
    assert report["no_place"] == {"summaries of conversations": 1, "attachments and files": 1}
    assert set(list_memories(shell, "--conversation", "c2")) == {"Which boat?", "The red one."}


def test_an_agent_file_of_letta_becomes_pinned_notes_and_turns(shell: Shell) -> None:
    report = import_files(shell, write_file(shell, "bot.af", LETTA))
    assert report["no_place"] == {"tools": 1, "system prompts": 1}
    memories = list_memories(shell, "--agent", "Bot")
    assert memories["Ann is a doctor."]["pinned"] is True
    assert memories["Ann is a doctor."]["metadata"] == {"label": "human", "description": "Who it is."}
    assert memories["Hello."]["document"]["role"] == "user"


def test_what_cannot_be_stored_is_skipped_with_the_reason(shell: Shell) -> None:
    value = [{"id": str(n), "memory": "A text.", "user_id": "u" * n, "x": {}} for n in (1, 400)]
    value[0]["x"] = {"long": "y" * 200}
    path = write_file(shell, "export.json", value)
    done = shell("import", "memory-formats", path, "--json", CONSPECTUS_MAX_METADATA_BYTES="100")
    assert skipped_counts(done.json) == {
        "metadata over the limit": 1,
        "user: is longer than 300 characters when it is URL-encoded": 1,
    }
    assert done.json["added"] == 0


def test_a_dry_run_writes_nothing(shell: Shell) -> None:
    path = write_file(shell, "AGENTS.md", "# Style\n\nShort.\n")
    done = shell("import", "memory-formats", path, "--dry-run")
    assert (done.code, "1 read: 0 added" in done.out) == (0, True)
    assert shell("memory", "list").code == 3


def test_a_file_over_the_limit_and_one_without_memories_are_errors_and_nothing(shell: Shell) -> None:
    path = write_file(shell, "AGENTS.md", "# Style\n\nShort.\n")
    assert shell("import", "memory-formats", path, CONSPECTUS_MAX_FILE_BYTES="5").code == 2
    assert shell("import", "memory-formats", write_file(shell, "empty.md", "")).code == 3
    assert shell("import", "memory-formats", shell.folder / "nowhere").code == 2
