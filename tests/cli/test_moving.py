"""migrate, backup and restore, as they are typed."""

import json
import zipfile
from pathlib import Path

from tests.cli.conftest import Shell


def test_a_folder_is_moved_to_another(filled: Shell, tmp_path: Path) -> None:
    before = filled("search", "backup", "--json").json
    moved = filled("migrate", "--from", tmp_path / "data", "--to", tmp_path / "new", "--json")
    assert moved.code == 0
    assert f"copied and verified as of {moved.json['moment']}" in moved.err
    assert moved.json["indexed"] == ["default"]
    tables = {table["table"]: table for table in moved.json["tables"]}
    assert tables["documents"]["rows"] == 6
    assert all(table["source_hash"] == table["target_hash"] for table in tables.values())
    after = filled("search", "backup", "--data-dir", tmp_path / "new", "--json").json
    assert [hit["chunk"] for hit in after["hits"]] == [hit["chunk"] for hit in before["hits"]]
    again = filled("migrate", "--from", tmp_path / "data", "--to", tmp_path / "new", "--json")
    assert (again.code, again.json["error"]["code"]) == (1, "conflict")
    assert "holds a store" in again.json["error"]["message"]


def test_without_index_it_is_built_by_the_first_question(filled: Shell, tmp_path: Path) -> None:
    moved = filled("migrate", "--from", tmp_path / "data", "--to", tmp_path / "new", "--no-index")
    assert moved.code == 0
    assert "no index built." in " ".join(moved.out.split())
    assert filled("search", "backup", "--data-dir", tmp_path / "new").code == 0


def test_a_backup_is_made_checked_and_restored(filled: Shell, tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    assert filled("backup", file, "--json").json["tables"]["documents"]["rows"] == 6
    assert filled("backup", file).code == 1
    assert filled("backup", "--check", file).code == 0
    assert filled("restore", file, "--to", tmp_path / "new").code == 0
    assert filled("restore", file, "--to", tmp_path / "new").code == 1
    moved = filled("migrate", "--from", tmp_path / "new", "--to", tmp_path / "moved", "--no-index")
    assert moved.code == 0, moved.err
    assert filled("check", "--data-dir", tmp_path / "new").code == 0
    file.write_bytes(file.read_bytes()[:-100])
    assert filled("backup", "--check", file).code == 2
    assert filled("restore", file, "--to", tmp_path / "other").code == 2


def test_what_a_backup_says_of_itself_steers_no_terminal(filled: Shell, tmp_path: Path) -> None:
    filled("backup", tmp_path / "a.zip")
    hostile = tmp_path / "b.zip"
    with zipfile.ZipFile(tmp_path / "a.zip") as original, zipfile.ZipFile(hostile, "w") as changed:
        manifest = {**json.loads(original.read("manifest.json")), "program": "\x9b2J\u202e\x7f\x1b[31m"}
        changed.writestr("records.sqlite", original.read("records.sqlite"))
        changed.writestr("manifest.json", json.dumps(manifest))
    checked = filled("backup", "--check", hostile, "--json")
    assert checked.json["program"] == manifest["program"]
    assert checked.out.replace("\n", "").isprintable()


def test_what_cannot_be_named(filled: Shell, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    assert filled("migrate", "--from", nothing, "--to", tmp_path / "x").code == 3
    assert filled("backup", tmp_path / "a.zip", "--data-dir", nothing).code == 3
    assert filled("backup", tmp_path / "a.zip", "--data-dir", "postgresql://x/y").code == 2
    misspelt = filled("status", "--data-dir", "postgresql:///x?nosuchoption=1")
    assert (misspelt.code, "nosuchoption" in misspelt.err) == (2, True)
    assert filled("backup", tmp_path / "a.zip", "--url", "http://x").code == 2
    assert filled("migrate", "--from", tmp_path / "data", "--to", "mysql://x").code == 2
    assert not nothing.exists()


def test_what_is_left_of_a_move_whose_index_cannot_be_built_is_said(filled: Shell, tmp_path: Path) -> None:
    away = {"CONSPECTUS_MILVUS_URI": "http://127.0.0.1:1", "CONSPECTUS_MILVUS_TIMEOUT_SECONDS": "1"}
    new = tmp_path / "new"
    moved = filled("migrate", "--from", tmp_path / "data", "--to", new, CONSPECTUS_INDEX="milvus", **away)
    assert (moved.code, "copied and verified" in moved.err) == (6, True)
    assert filled("reindex", "--data-dir", new).code == 0
    assert filled("check", "--data-dir", new).code == 0
