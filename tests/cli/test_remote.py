"""Commands that ask a server: a real one, in a process of its own, with accounts."""

from pathlib import Path

import pytest

from tests.cli.conftest import Remote, Shell


@pytest.fixture
def filled(remote: Remote, notes: Path) -> Remote:
    assert remote("add", notes).code == 0
    return remote


def test_files_of_this_machine_are_followed(remote: Remote, notes: Path, tmp_path: Path) -> None:
    assert remote("add", notes, "--json").json["added"] == 6
    assert remote("add", notes, "--json").json["unchanged"] == 6
    (notes / "backups.md").write_text("# Backups\n\nNow at three.\n", encoding="utf-8")
    (notes / "releases.md").unlink()
    report = remote("add", notes, "--prune", "--json").json
    assert (report["replaced"], report["unchanged"], report["pruned"]) == (1, 4, 1)
    assert "1 added" in remote("add", "-", typed="Grüße aus Köln").out
    results = remote("search", "Köln", "--source", "stdin", "--json").json
    assert results["hits"][0]["chunk"]["text"] == "Grüße aus Köln"
    assert not (tmp_path / "data").exists()


def test_the_answers_are_those_of_a_folder(filled: Remote, shell: Shell, notes: Path) -> None:
    shell("add", notes)
    for command in (
        ["context", "when does the backup run", "--max-tokens", "60"],
        [
            "context",
            "when does the backup run",
            "--max-tokens",
            "60",
            "--format",
            "messages",
            "--reserve-tokens",
            "20",
        ],
        ["context", "Tuesdays", "--max-tokens", "90", "--tokenizer", "chars4_ceil", "--source", str(notes)],
        ["explain", "Tuesdays", "--max-tokens", "5", "--filter", "kind=page"],
        ["search", "backup", "--limit", "3"],
    ):
        there, here = filled(*command), shell(*command)
        assert there.out
        assert (there.code, there.out, there.err) == (here.code, here.out, here.err)


def test_documents_are_listed_and_deleted(filled: Remote) -> None:
    page = filled("list", "--limit", "4", "--json").json
    rest = filled("list", "--after", page["next"], "--json").json
    assert len({document["id"] for document in page["documents"] + rest["documents"]}) == 6
    assert filled("delete", "--filter", "metadata.state=open", typed="n\n").code == 1
    receipt = filled("delete", "--filter", "metadata.state=open", "--yes", "--purge", "--json").json
    assert (receipt["documents"], receipt["purged"]) == (2, True)
    gone = filled("delete", page["documents"][0]["id"], "nobody", "--yes", "--json")
    assert gone.json["documents"] <= 1


def test_the_store_of_the_server_is_looked_after(filled: Remote) -> None:
    [numbers] = filled("status", "--collection", filled.collection, "--json").json["collections"]
    assert (numbers["documents"], numbers["space"]) == (6, None)
    assert filled("check", "--json").json["clean"] is True
    assert filled("reindex", "--json").json["reindexed"] is True
    assert filled("reembed", "nonsense").code == 2


def test_people_are_let_in_and_shut_out(filled: Remote) -> None:
    assert filled("users", "add", "ann").code == 0
    ann = filled("keys", "create", "ann", "--json").json["secret"]
    assert filled("search", "printers", CONSPECTUS_API_KEY=ann).code == 3
    assert filled("grants", "add", "viewer", "--user", "ann").code == 0
    assert filled("search", "printers", CONSPECTUS_API_KEY=ann).code == 0
    denied = filled("delete", "--filter", "kind=page", "--yes", "--json", CONSPECTUS_API_KEY=ann)
    assert (denied.code, denied.json["error"]["code"]) == (1, "permission_denied")
    assert filled("grants", "remove", "--user", "ann").code == 0
    assert filled("search", "printers", CONSPECTUS_API_KEY=ann).code == 3


@pytest.mark.parametrize("key", ["", "csp_invented_key"])
def test_without_a_key_nothing_is_answered(filled: Remote, key: str) -> None:
    done = filled("search", "printers", "--json", CONSPECTUS_API_KEY=key)
    assert (done.code, done.json["error"]["code"]) == (1, "unauthenticated")


def test_errors_are_those_of_a_folder(filled: Remote) -> None:
    for arguments, code, reason in (
        (["search", "x", "--collection", "nowhere"], 3, "no collection 'nowhere'"),
        (["search", "x", "--limit", "1000000"], 2, "limit"),
        (["search", "x" * 20_000], 2, "query: is 20000 characters"),
        (["context", "x", "--max-tokens", "9", "--tokenizer", "nope"], 2, "'nope' is unknown"),
        (["list", "--after", "rubbish"], 2, ""),
        (["explain", "x", "--document", "nobody"], 3, "no document 'nobody'"),
    ):
        done = filled(*arguments)
        assert (done.code, done.out) == (code, "")
        assert reason in done.err


def test_a_server_that_is_not_there(shell: Shell) -> None:
    done = shell("list", "--url", "http://127.0.0.1:9", "--json")
    assert (done.code, done.json["error"]["code"]) == (6, "server_unavailable")
    assert shell("list", "--url", "nonsense").code == 2


def test_where_a_command_looks(filled: Remote, notes: Path, tmp_path: Path) -> None:
    here = ["--data-dir", str(tmp_path / "here")]
    assert filled("add", notes / "backups.md", *here, "--json").json["added"] == 1
    assert len(filled("list", *here, "--json").json["documents"]) == 1
    assert len(filled(*here, "list", "--json").json["documents"]) == 1
    assert len(filled(*here, "list", "--url", filled.server.url, "--json").json["documents"]) == 6
    both = filled("list", *here, "--url", filled.server.url)
    assert (both.code, "either --url or --data-dir" in both.err) == (2, True)


@pytest.mark.parametrize("command", [["serve"], ["eval", "retrieval", "."], ["eval", "conversation", "."]])
def test_what_works_on_this_machine_says_so(shell: Shell, command: list[str]) -> None:
    done = shell(*command, "--url", "http://localhost:8642")
    assert done.code == 2
    assert "does not work with a server" in done.err


def test_the_key_is_never_shown(filled: Remote) -> None:
    for arguments in (["search", "printers"], ["status", "--json"], ["list", "--url", "http://127.0.0.1:9"]):
        done = filled(*arguments)
        assert filled.server.key not in done.out + done.err
