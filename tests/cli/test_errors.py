"""What goes wrong ends with a message, the documented exit code and no trace."""

from pathlib import Path

import pytest

from conspectus.cli.errors import exit_code, message_of
from conspectus.cli.main import run
from conspectus.cli.output import cell, printable, to_json_value
from conspectus.cli.search import bar
from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    IndexDamaged,
    InvalidInput,
    InvalidToken,
    LoginFailed,
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


def test_who_has_no_valid_key_learns_both_ways_in() -> None:
    assert message_of(Unauthenticated()).endswith(
        "; set CONSPECTUS_API_KEY, or run: conspectus login --url URL"
    )
    for error in (InvalidToken(), LoginFailed("the login has ended"), NotFound("a", "b")):
        assert message_of(error) == str(error)


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
        (["search", "x", "--limit", "-1"], "--limit"),
        (["search", "x", "--limit", "1000000"], "limit: must be"),
        (["search", "x", "--min-similarity", "7"], "--min-similarity"),
        (["search", "x", "--filter", "colour=red"], "'colour' is not a field"),
        (["search", "x", "--filter", "{"], "is not JSON"),
        (["search", "x" * 20_000], "query: is 20000 characters"),
        (["context", "x", "--max-tokens", "-1"], "--max-tokens"),
        (["context", "x", "--max-tokens", "9", "--tokenizer", "nope"], "'nope' is unknown"),
        (["context", "x", "--max-tokens", "9", "--format", "pdf"], "--format"),
        (["list", "--limit", "1001"], "limit: must be"),
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
    assert to_json_value({"a": (float("nan"), float("inf"), 1.5, True)}) == {"a": [None, None, 1.5, True]}
