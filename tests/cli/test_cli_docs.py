"""docs/reference/cli.md names commands and options that exist, and every exit code; all have help."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from conspectus.cli.errors import MEANINGS
from conspectus.cli.main import COMMANDS as PATHS
from conspectus.cli.main import build_app
from conspectus.model.filter import FIELDS

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its whole name."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {part}")
    if not getattr(command, "commands", {}):
        yield name, command


PROGRAM = typer.main.get_command(build_app())
COMMANDS = dict(commands(PROGRAM, "conspectus"))


def options(command: Any) -> set[str]:
    return {
        name for each in command.params for name in each.opts + each.secondary_opts if name.startswith("-")
    }


def section(name: str) -> str:
    return next(part for part in DOCS.split("\n## ") if re.match(rf"{name}\b", part))


def test_every_section_on_a_command_names_one() -> None:
    headings = re.findall(r"^## (conspectus [a-z0-9 -]+?)(?: [A-Z[-].*)?$", DOCS, re.MULTILINE)
    assert headings and set(headings) <= set(COMMANDS)


def test_every_command_has_help() -> None:
    assert [name for name, command in COMMANDS.items() if not command.help] == []
    assert [
        (name, each.name) for name, command in COMMANDS.items() for each in command.params if not each.help
    ] == []


def groups(command: Any) -> Iterator[Any]:
    """A group and all groups below it."""
    if inner := getattr(command, "commands", {}):
        yield command
        for each in inner.values():
            yield from groups(each)


def test_every_summary_fits_on_a_line_of_help() -> None:
    runner = CliRunner(env={"COLUMNS": "80"})
    short = [
        each.get_short_help_str(limit=70) for group in groups(PROGRAM) for each in group.commands.values()
    ]
    assert [each for each in short if each.endswith("...") or not each.endswith(".")] == []
    for path in ("", *(path for path in PATHS if path)):
        shown = runner.invoke(build_app(), [*path.split(), "--help"]).stdout
        assert (path, "..." in shown.partition("Commands:")[2]) == (path, False)


def test_every_command_that_lists_takes_a_limit() -> None:
    listing = [each for name, each in COMMANDS.items() if (each.help or "").startswith("List ")]
    assert [each.name for each in listing if not {"-n", "--limit"} <= options(each)] == []


def test_every_option_of_the_program_is_described() -> None:
    shared = section("Options of every command")
    assert [option for option in options(PROGRAM) if option not in shared] == []


def test_no_option_is_described_that_does_not_exist() -> None:
    known = {"--help", *options(PROGRAM)}.union(*map(options, COMMANDS.values()))
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", DOCS.replace("| --- |", ""))) <= known


def test_every_exit_code_is_in_the_docs_and_in_the_help() -> None:
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in DOCS
        assert f"{code} {meaning}" in (PROGRAM.epilog or "")


def test_every_field_of_a_filter_is_named() -> None:
    assert [name for name in FIELDS if f"`{name}`" not in section("Filters")] == []
