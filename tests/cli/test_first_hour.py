"""What newcomers type first: missing paths, addresses, other names of commands, settings and empty lists."""

import json
from pathlib import Path

import pytest

import conspectus
from conspectus import Settings
from conspectus.cli.main import COMMANDS, GROUPS, SYNONYMS, run
from tests.cli.conftest import Shell


@pytest.mark.parametrize("path", ["nowhere", "https://example.org/manual.html"])
def test_a_path_that_cannot_be_added_makes_no_store(shell: Shell, path: str) -> None:
    done = shell("add", path)
    assert done.code == 2 and path in done.err
    assert not (shell.folder / "data").exists()


def test_the_address_of_a_page_leads_to_ingest(shell: Shell) -> None:
    assert "use: conspectus ingest https://example.org" in shell("add", "https://example.org").err


@pytest.mark.parametrize("name", SYNONYMS)
def test_other_names_of_commands_lead_to_ours(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = SYNONYMS[name].split()
    assert command[0] in {*COMMANDS, *GROUPS}
    assert run([*command, "--help"]) == 0
    capsys.readouterr()
    assert run([name]) == 2
    assert capsys.readouterr().err.rstrip().endswith(f"Use: conspectus {SYNONYMS[name]}")


@pytest.mark.parametrize("group", GROUPS)
def test_an_unknown_command_of_a_group_names_those_that_it_has(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*group.split(), "nothing"]) == 2
    error = capsys.readouterr().err
    assert f"No such command 'nothing'. Commands of {group.split()[-1]}: " in error
    assert ("conspectus messages import FILE" in error) == (group == "import")
    assert len(error.partition(": ")[2].split(", ")) >= 2


def test_a_deletion_that_nobody_can_confirm_leads_to_yes(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    done = shell("delete", "--filter", "kind=page", typed="")
    assert (done.code, "--yes" in done.err, "nothing was deleted" in done.err) == (1, True, True)
    assert shell("list").code == 0


@pytest.mark.parametrize("command", ["list", "recall x", "recent", "stats"])
def test_a_store_without_memories_says_how_to_add_one(shell: Shell, notes: Path, command: str) -> None:
    shell("add", notes)
    done = shell("memory", *command.split())
    assert (done.code, "no memories yet; `conspectus memory add TEXT`" in done.err) == (3, True)


EMPTY_LISTS = (
    "list", "alerts list", "answers list", "connections list", "feedback list", "graph list",
    "grants list", "groups list", "invitations list", "jobs list", "keys list", "memory list",
    "quarantine list", "requests list", "sessions list", "streams list", "tasks list", "users list",
)  # fmt: skip


@pytest.mark.parametrize("command", EMPTY_LISTS)
def test_an_empty_list_says_so(shell: Shell, command: str) -> None:
    with conspectus.open(shell.folder / "data", settings=Settings(embedder="none")) as engine:
        engine.collections.get_or_create("default")
    done = shell(*command.split())
    assert (done.code, done.out) == (3, ""), done
    assert done.err.startswith(("no ", "nothing ")), done.err


def test_a_variable_that_is_no_setting_is_named(shell: Shell, notes: Path) -> None:
    done = shell("status", CONSPECTUS_CHUNKSIZE="100", CONSPECTUS_EMBEDDER="none")
    assert (
        "CONSPECTUS_CHUNKSIZE is not a setting and has no effect; did you mean CONSPECTUS_CHUNK_SIZE?"
        in done.err
    )


def test_lists_without_people_say_what_that_means(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    users, grants = shell("users", "list"), shell("grants", "list")
    assert (users.code, "no users yet" in users.err) == (3, True)
    assert (grants.code, "no grants yet" in grants.err) == (3, True)


def test_a_limit_of_zero_is_an_empty_result_that_says_why(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    printed = shell("search", "backup", "--limit", "0")
    assert (printed.code, "limit is 0: no hit is returned" in printed.err) == (3, True)
    assert shell("search", "backup", "--limit", "-1").code == 2
    with conspectus.open(shell.folder / "data") as engine:
        results = [engine.retrieve("backup", limit=0), engine.window("backup", limit=0)]
    assert [result.notices[-1] for result in results] == ["limit is 0: no hit is returned"] * 2


@pytest.mark.parametrize("command", ["search", "context"])
def test_a_search_before_anything_was_added_says_so(shell: Shell, command: str) -> None:
    with conspectus.open(shell.folder / "data"):
        pass
    printed = shell(command, "backup")
    assert (printed.code, "nothing that you may read has been added yet" in printed.err) == (3, True)
    assert shell(command, "backup", "--collection", "other").code == 3
    assert "no collection 'other'" in shell(command, "backup", "--collection", "other").err


def test_a_search_where_only_tasks_are_names_the_collections(shell: Shell) -> None:
    assert shell("tasks", "add", "t1", "Fix the login").code == 0
    printed = shell("search", "login")
    assert (printed.code, "other collections: tasks" in printed.err) == (3, True)
    assert shell("search", "login", "--collection", "tasks").code == 0


def test_an_account_can_be_the_first_thing_of_a_store(shell: Shell) -> None:
    missing = shell("users", "list")
    assert (missing.code, "`conspectus add PATH` makes one" in missing.err) == (3, True)
    assert shell("users", "add", "ann").code == 0
    assert shell("keys", "create", "ann").code == 0
    assert shell("groups", "add", "crew", "--data-dir", shell.folder / "other").code == 0


def test_json_of_a_search_has_only_what_a_reader_needs(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    retrieval = shell("search", "backup", "--limit", "1", "--json").json
    assert retrieval.keys().isdisjoint({"terms", "nearest", "signals", "threads"})
    assert len(json.dumps(retrieval)) < 4_000


def test_a_backup_is_one_sentence(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    file, other = shell.folder / "notes.backup", shell.folder / "other"
    for begin, arguments in (
        ("Backed up to ", ("backup", file)),
        (f"{file} can be restored", ("backup", "--check", file)),
        (f"Restored {file}", ("restore", file, "--to", other)),
        (
            "Copied ",
            ("migrate", "--from", shell.folder / "data", "--to", shell.folder / "third", "--no-index"),
        ),
    ):
        done = shell(*arguments)
        line = " ".join(done.out.split())
        assert (done.code, line.startswith(begin), line.count(". ")) == (0, True, 0), done
        assert " rows in " in line and "alembic_version" not in line
