"""Files that are exports of chats or memories are recognized by their importers, and nothing else is."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import UnsupportedContent
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.known_exports import MEMORIES, MESSAGES, KnownExports

DISCORD = {
    "guild": {"id": "1", "name": "Guild"},
    "channel": {"id": "2", "name": "general"},
    "messages": [
        {
            "id": "3",
            "timestamp": "2024-01-01T10:00:00Z",
            "content": "Hi.",
            "author": {"id": "4", "name": "ann"},
        }
    ],
}
NODE = {"id": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["Hi."]}}}
CHATGPT = [{"title": "Boats", "conversation_id": "c", "current_node": "a", "mapping": {"a": NODE}}]
CLAUDE = [{"uuid": "c", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Hi."}]}]
MEM0 = {"results": [{"id": "1", "memory": "Ann likes tea.", "user_id": "ann"}]}
GRAPH = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}
SLACK: dict[str, Any] = {
    "users.json": [{"id": "U1", "name": "ann"}],
    "channels.json": [{"id": "C1", "name": "general"}],
    "general/2024-01-01.json": [{"type": "message", "user": "U1", "text": "Hi.", "ts": "1704103200.000100"}],
}
SETTINGS = Settings()
FILES = LocalFiles(SETTINGS, KnownExports(SETTINGS))


def write_folder(folder: Path, members: dict[str, Any]) -> Path:
    for name, value in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def write_zip(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
    return path


@pytest.mark.parametrize(
    ("value", "command"),
    [(DISCORD, MESSAGES), (CHATGPT, MEMORIES), (CLAUDE, MEMORIES), (MEM0, MEMORIES), (GRAPH, MEMORIES)],
)
def test_an_export_in_one_file_is_refused_with_its_command(
    tmp_path: Path, value: object, command: str
) -> None:
    path = write_folder(tmp_path, {"my export.json": value}) / "my export.json"
    [file] = FILES.discover([path])
    with pytest.raises(UnsupportedContent, match=f"{command} '{path}'"):
        FILES.parse(file)


def test_an_export_of_slack_is_refused_as_archive_and_as_folder(tmp_path: Path) -> None:
    archive, folder = write_zip(tmp_path / "slack.zip", SLACK), write_folder(tmp_path / "slack", SLACK)
    [file] = FILES.discover([archive])
    with pytest.raises(UnsupportedContent, match=f"{MESSAGES} {archive}"):
        FILES.parse(file)
    with pytest.raises(UnsupportedContent, match=f"{MESSAGES} {folder}"):
        list(FILES.discover([folder]))


def test_exports_among_other_files_are_skipped_alone(tmp_path: Path) -> None:
    members = {f"chat/{name}": value for name, value in SLACK.items()} | {"deep/discord.json": DISCORD}
    archive = write_zip(tmp_path / "mixed.zip", {**members, "plan.md": "The plan."})
    [file] = FILES.discover([archive])
    faults = {member.name for member in FILES.parse(file).members if member.fault is not None}
    assert faults == {"mixed.zip/chat/general/2024-01-01.json", "mixed.zip/deep/discord.json"}


@pytest.mark.parametrize(
    "value",
    [
        [{"id": 1, "memory": "16 GB"}, {"id": 2, "memory": "8 GB"}],
        {"mapping": {"properties": {"title": {"type": "text"}}}},
        [{"id": "a", "text": "A note in a channel.", "channel": "general"}],
        {"messages": ["saved", "deleted"], "channel": {"name": "stable"}},
        {"type": "relation", "text": "A word about relations."},
        {"blocks": [{"type": "paragraph"}], "agents": []},
        [],
        "memory",
    ],
)
def test_other_json_is_no_export(tmp_path: Path, value: object) -> None:
    folder = write_folder(tmp_path, {"2024-01-01.json": value, "2024-01-02.json": value})
    parsed = [FILES.parse(file) for file in FILES.discover([folder])]
    assert all(file.documents or file.notice for file in parsed)


def test_damaged_files_are_left_to_their_readers() -> None:
    exports = KnownExports(SETTINGS)
    damaged = (b"PK\x03\x04damaged", b'{"mapping": ', b"[" * 100_000, b"\xff\xfe\x00", b'"memory"')
    assert [exports.command_for_file(data, "export.json") for data in damaged] == [None] * len(damaged)
