"""Convert errors to messages and exit codes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from conspectus.cli.output import dump, note
from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    InvalidInput,
    InvalidToken,
    LoginFailed,
    NotFound,
    Overloaded,
    ProviderUnavailable,
    ServerUnavailable,
    StorageBusy,
    Unauthenticated,
    UnreadableFile,
)

FAILED = 1
INVALID = 2
NOTHING = 3
PARTIAL = 4
DIFFERENT = 5
BUSY = 6
INTERRUPTED = 130
BROKEN_PIPE = 141
MEANINGS = {
    0: "success",
    FAILED: "failed, or not confirmed",
    INVALID: "invalid usage or value",
    NOTHING: "nothing found",
    PARTIAL: "partly done: some items failed",
    DIFFERENT: "`check` found differences",
    BUSY: "busy or unavailable; retry later",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the output pipe was closed",
}


@contextmanager
def report_errors(*, as_json: bool) -> Iterator[None]:
    """Convert errors to a message (with `--json`, a document on stdout) and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        raise typer.Exit(BROKEN_PIPE) from None
    except ConspectusError as error:
        facts = {name: value for name, value in vars(error).items() if name not in {"code", "message"}}
        fail(error.code, message_of(error), facts=facts, as_json=as_json)
        raise typer.Exit(exit_code(error)) from None
    except OSError as error:
        fail("system_error", str(error), facts={}, as_json=as_json)
        raise typer.Exit(FAILED) from None


def message_of(error: ConspectusError) -> str:
    """Return the message of an error, with the ways in of the command line for who has no valid key."""
    if isinstance(error, Unauthenticated) and not isinstance(error, LoginFailed | InvalidToken):
        return f"{error}; set CONSPECTUS_API_KEY, or run: conspectus login --url URL"
    return str(error)


def exit_code(error: ConspectusError) -> int:
    """Return the exit code for an error."""
    match error:
        case InvalidInput() | UnreadableFile() | ForbiddenAddress():
            return INVALID
        case NotFound():
            return NOTHING
        case StorageBusy() | ProviderUnavailable() | ServerUnavailable() | Overloaded():
            return BUSY
        case FetchFailed(passing=True):
            return BUSY
        case _:
            return FAILED


def fail(code: str, message: str, *, facts: dict[str, object], as_json: bool) -> None:
    """Report an error on stderr, or as the JSON document on stdout."""
    if as_json:
        dump({"error": {"code": code, "message": message, **facts}})
    else:
        note(f"error: {message}")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation of a deletion, unless `yes`; a refusal ends the command."""
    if yes:
        return
    try:
        is_confirmed = typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        note("\nnothing confirms this; --yes does")
        is_confirmed = False
    if not is_confirmed:
        note("nothing was deleted")
        raise typer.Exit(FAILED)


def _forget_output() -> None:
    """Prevent the interpreter from writing to the closed pipe at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
