"""What goes wrong ends with a message, the documented exit code and no trace."""

from pathlib import Path

import pytest

from conspectus.cli import main
from conspectus.cli.errors import exit_code
from conspectus.cli.main import run
from conspectus.cli.output import cell, plain, printable
from conspectus.cli.search import bar
from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    IndexDamaged,
    InvalidInput,
    NotFound,
    Overloaded,
    PermissionDenied,
    PreconditionFailed,
    ProviderUnavailable,
    ServerUnavailable,
    StorageBusy,
    TooLarge,
    Unauthenticated,
    UnreadableFile,
    UnsupportedContent,
)
from tests.cli.conftest import Shell
from tests.cli.test_cli_docs import COMMANDS, options


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("a", "b"), 2),
        (TooLarge("a", size=2, limit=1), 2),
        (UnreadableFile("a", "b"), 2),
        (NotFound("a", "b"), 3),
        (StorageBusy("b"), 6),
        (ProviderUnavailable("a", "b"), 6),
        (IndexDamaged("a", "b"), 1),
        (Unauthenticated(), 1),
        (PermissionDenied("a", "b"), 1),
        (PreconditionFailed("a", "b"), 1),
        (Overloaded("a"), 6),
        (ServerUnavailable("a", "b"), 6),
        (FetchFailed("a", "b", passing=True), 6),
        (FetchFailed("a", "b", status=404), 1),
        (ForbiddenAddress("a"), 2),
        (UnsupportedContent("a", "b"), 2),
    ],
)
def test_exit_codes(error: ConspectusError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["search", "x", "--limit", "0"], "--limit"),
        (["search", "x", "--limit", "1000000"], "limit: must be"),
        (["search", "x", "--min-similarity", "7"], "min_similarity"),
        (["search", "x", "--filter", "colour=red"], "'colour' is not a field"),
        (["search", "x", "--filter", "{"], "is not JSON"),
        (["search", "x" * 20_000], "query: is 20000 characters"),
        (["context", "x", "--max-tokens", "-1"], "--max-tokens"),
        (["context", "x"], "--max-tokens"),
        (["context", "x", "--max-tokens", "9", "--tokenizer", "nope"], "'nope' is unknown"),
        (["context", "x", "--max-tokens", "9", "--format", "pdf"], "--format"),
        (["list", "--limit", "1001"], "--limit"),
        (["list", "--after", "rubbish"], ""),
        (["reembed", "none"], "is required; embeddings"),
        (["reembed", "nonsense"], "is not minilm"),
        (["frobnicate"], "frobnicate"),
        (["add"], ""),
    ],
)
def test_wrong_input_is_exit_code_2_with_the_reason(filled: Shell, arguments: list[str], reason: str) -> None:
    done = filled(*arguments)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert "Traceback" not in done.err


def test_errors_are_json_too(filled: Shell) -> None:
    done = filled("search", "x", "--filter", "colour=red", "--json")
    error = done.json["error"]
    assert (done.code, done.err) == (2, "")
    assert (error["code"], error["field"]) == ("invalid_input", "filter")
    assert error["reason"] in error["message"]


def test_usage_errors_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "--json"]) == 2
    captured = capsys.readouterr()
    assert '"code": "usage"' in captured.out
    assert captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["video", "import", "x.srt"], "No such command 'video'. It is now 'streams'."),
        (
            ["--json", "video", "alerts", "listen"],
            "No such command 'video alerts listen'. It is now 'alerts watch'.",
        ),
        (["--collection", "x", "wiki"], "No such command 'wiki'. It is now 'connections'."),
        (["memory", "forget", "--all"], "No such command 'memory forget'. It is now 'memory delete'."),
        (["search", "x", "--floor", "0.3"], "No such option '--floor'. It is now '--min-similarity'."),
        (["ask", "x", "--answer", "5"], "No such option '--answer'. It is now '--max-answer-tokens'."),
        (["--data", "x", "list"], "No such option '--data'. It is now '--data-dir'."),
    ],
)
def test_an_old_name_names_the_new_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert message in "".join(capsys.readouterr())


def test_every_old_name_is_gone_and_its_new_one_exists() -> None:
    names = {name.removeprefix("conspectus ") for name in COMMANDS}
    assert [old for old in main.OLD_COMMANDS if old in names] == []
    missing = [
        new
        for new in main.OLD_COMMANDS.values()
        if not any(f"{each} ".startswith(f"{new} ") for each in names)
    ]
    assert missing == []
    known = set.union(*map(options, COMMANDS.values()))
    renamed = {old: new for old, new in main.OLD_OPTIONS.items() if " " not in old}
    assert [new for new in renamed.values() if new.split()[0] not in known] == []


def test_the_old_option_for_tokens_still_works(filled: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--data-dir", str(filled.folder / "data"), "context", "printers", "--tokens=200"]) == 0
    assert "of 200 tokens" in capsys.readouterr().err


def test_a_setting_that_cannot_be_read_is_named(shell: Shell) -> None:
    done = shell("status", CONSPECTUS_LOCK_TIMEOUT_SECONDS="soon")
    assert (done.code, done.out) == (2, "")
    assert "CONSPECTUS_LOCK_TIMEOUT_SECONDS" in done.err


def test_a_place_that_cannot_hold_data_is_an_error(shell: Shell, notes: Path) -> None:
    done = shell("--data-dir", notes / "backups.md", "add", notes)
    assert (done.code, done.out) == (1, "")
    assert "backups.md" in done.err


def test_nothing_is_made_by_looking(shell: Shell, tmp_path: Path) -> None:
    for command in (["search", "x"], ["list"], ["status"], ["check"], ["delete", "x", "-y"], ["reindex"]):
        assert shell(*command).code == 3
    assert not (tmp_path / "data").exists()


def test_an_unknown_document_or_collection_is_exit_code_3(filled: Shell) -> None:
    assert filled("explain", "x", "--document", "nope").code == 3
    assert filled("search", "x", "--collection", "nope").code == 3


def test_text_cannot_steer_the_terminal(filled: Shell) -> None:
    filled("add", "-", typed="marker \x1b[31mred\x07 [bold]not markup[/bold] \u202eback")
    done = filled("search", "marker")
    assert "\x1b" not in done.out and "\x07" not in done.out and "\u202e" not in done.out
    assert "[bold]not markup[/bold]" in done.out
    assert printable("a\tb\nc\x9b") == "a\tb\nc\ufffd"


def test_cells_and_bars_have_one_width() -> None:
    assert cell("a\n\n b" + "c" * 50, limit=10).plain == "a bcccccc…"
    assert [len(bar(share)) for share in (-1.0, 0.0, 0.01, 0.333, 0.999, 1.0, 9.0)] == [10] * 7
    assert (bar(0.0), bar(1.0)) == (" " * 10, "█" * 10)


def test_numbers_that_json_lacks_become_null() -> None:
    assert plain({"a": (float("nan"), float("inf"), 1.5, True)}) == {"a": [None, None, 1.5, True]}
