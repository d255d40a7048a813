"""docs/reference/cli.md names commands and options that exist, and every exit code; all have help."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from conspectus.cli.errors import MEANINGS
from conspectus.cli.main import GROUPS, build_app
from conspectus.model.filter import FIELDS

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def walk_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its whole name."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from walk_commands(inner, f"{name} {part}")
    if not getattr(command, "commands", {}):
        yield name, command


PROGRAM = typer.main.get_command(build_app())
COMMANDS = dict(walk_commands(PROGRAM, "conspectus"))


def option_names(command: Any) -> set[str]:
    return {
        name
        for parameter in command.params
        for name in parameter.opts + parameter.secondary_opts
        if name.startswith("-")
    }


def find_section(name: str) -> str:
    return next(part for part in DOCS.split("\n## ") if re.match(rf"{name}\b", part))


def test_every_section_on_a_command_names_one() -> None:
    headings = re.findall(r"^## (conspectus [a-z0-9 -]+?)(?: [A-Z[-].*)?$", DOCS, re.MULTILINE)
    assert headings and set(headings) <= set(COMMANDS)


def test_every_command_has_help() -> None:
    assert [name for name, command in COMMANDS.items() if not command.help] == []
    assert [
        (name, parameter.name)
        for name, command in COMMANDS.items()
        for parameter in command.params
        if not parameter.help
    ] == []


def walk_groups(command: Any) -> Iterator[Any]:
    """A group and all groups below it."""
    if inner := getattr(command, "commands", {}):
        yield command
        for subcommand in inner.values():
            yield from walk_groups(subcommand)


def test_every_summary_fits_on_a_line_of_help() -> None:
    runner = CliRunner(env={"COLUMNS": "80"})
    summaries = [
        command.get_short_help_str(limit=70)
        for group in walk_groups(PROGRAM)
        for command in group.commands.values()
    ]
    assert [summary for summary in summaries if summary.endswith("...") or not summary.endswith(".")] == []
    for path in ("", *GROUPS):
        help_text = runner.invoke(build_app(), [*path.split(), "--help"]).stdout
        assert (path, "..." in help_text.partition("Commands:")[2]) == (path, False)


def test_every_command_that_lists_takes_a_limit() -> None:
    listing = [command for name, command in COMMANDS.items() if (command.help or "").startswith("List ")]
    assert [command.name for command in listing if not {"-n", "--limit"} <= option_names(command)] == []


def test_every_option_of_the_program_is_described() -> None:
    shared = find_section("Options of every command")
    assert [option for option in option_names(PROGRAM) if option not in shared] == []


def test_no_option_is_described_that_does_not_exist() -> None:
    existing_options = {"--help", *option_names(PROGRAM)}.union(*map(option_names, COMMANDS.values()))
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", DOCS.replace("| --- |", ""))) <= existing_options


def test_every_exit_code_is_in_the_docs_and_in_the_help() -> None:
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in DOCS
        assert f"{code} {meaning}" in (PROGRAM.epilog or "")


def test_every_field_of_a_filter_is_named() -> None:
    assert [name for name in FIELDS if f"`{name}`" not in find_section("Filters")] == []
