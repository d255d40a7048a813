"""docs/cli.md names every command, every option and every exit code, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from conspectus.cli.errors import MEANINGS
from conspectus.cli.main import build_app
from conspectus.model.filter import FIELDS

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its whole name."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {part}")
    if not getattr(command, "commands", {}):
        yield name, command


SHARED = ("Options of every command", "Which documents", "Whose memories, and which graph")
PROGRAM = typer.main.get_command(build_app())
COMMANDS = dict(commands(PROGRAM, "conspectus"))


def options(command: Any) -> set[str]:
    return {
        name for each in command.params for name in each.opts + each.secondary_opts if name.startswith("-")
    }


def section(name: str) -> str:
    return next(part for part in DOCS.split("\n## ") if re.match(rf"{name}\b", part))


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    headings = re.findall(r"^## (conspectus [a-z -]+?)(?: [A-Z[-].*)?$", DOCS, re.MULTILINE)
    assert sorted(headings) == sorted(COMMANDS)


def test_every_command_has_help() -> None:
    assert [name for name, command in COMMANDS.items() if not command.help] == []
    assert [
        (name, each.name) for name, command in COMMANDS.items() for each in command.params if not each.help
    ] == []


def test_every_option_is_described_with_its_command() -> None:
    shared = "".join(map(section, SHARED))
    missing = [
        f"{name} {option}"
        for name, command in COMMANDS.items()
        for option in sorted(options(command))
        if f"`{option}" not in section(name) + shared
    ]
    assert missing == []
    assert [option for option in options(PROGRAM) if f"{option}" not in shared] == []


def test_no_option_is_described_that_does_not_exist() -> None:
    known = {"--help", *options(PROGRAM)}.union(*map(options, COMMANDS.values()))
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", DOCS.replace("| --- |", ""))) <= known


def test_every_exit_code_is_in_the_docs_and_in_the_help() -> None:
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in DOCS
        assert f"{code} {meaning}" in (PROGRAM.epilog or "")


def test_every_field_of_a_filter_is_named() -> None:
    assert [name for name in FIELDS if f"`{name}`" not in section("Which documents")] == []
