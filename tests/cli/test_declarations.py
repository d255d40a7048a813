"""Bounds, help and defaults of a parameter are the same in the library, over HTTP and MCP, and on the CLI."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from typer.core import TyperOption
from typer.main import get_command

import conspectus
from conspectus.cli import declared as cli_declared
from conspectus.cli import options as shared
from conspectus.cli.command import Command
from conspectus.cli.derived import Derivation
from conspectus.cli.main import COMMANDS, GROUPS, build_app
from conspectus.engine import Engine
from conspectus.engine.tasks import TaskService
from conspectus.errors import InvalidInput
from conspectus.mcp.operation_tools import TEXT_OPERATIONS
from conspectus.mcp.tool_list import TOOLS
from conspectus.model.annotations import Declaration, Length, annotated_hints, declaration_of
from conspectus.model.filter import Filter
from conspectus.operations.operation import OMITTED, REQUIRED, Operation, Parameter
from conspectus.operations.table import OPERATIONS
from conspectus.settings import Settings


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=Settings(embedder="none")) as opened:
        yield opened


def wrong_texts() -> Iterator[tuple[Operation, str, str]]:
    """Texts beside the length of a parameter, of methods that take them by themselves."""
    for operation in OPERATIONS.values():
        owned = set(getattr(operation.fields_of, "__dataclass_fields__", ()))
        for parameter in operation.parameters:
            length, members = parameter.declaration.length, cli_declared.members_of(parameter.hint)
            if length is None or parameter.name in owned or str not in members:
                continue
            if any(get_origin(member) for member in members):
                continue  # the length is that of a list, which may be given as its only text
            if length.shortest:
                yield operation, parameter.name, ""
            if length.longest < 1_000_000:
                yield operation, parameter.name, "x" * (length.longest + 1)


async def test_the_library_refuses_each_text_of_another_length(engine: Engine) -> None:
    wrong = list(wrong_texts())
    assert len(wrong) > 100
    for operation, name, text in wrong:
        with pytest.raises(InvalidInput, match=" characters") as refused:
            await operation.of(engine)(**{name: text})
        assert refused.value.field == name, operation.name


def test_a_length_is_that_of_a_text_or_a_list() -> None:
    Length(1, 3).require("name", "abc")
    with pytest.raises(InvalidInput, match="name: must have from 1 to 3 characters"):
        Length(1, 3).require("name", "")
    with pytest.raises(InvalidInput, match="ids: must have at most 1 elements"):
        Length(0, 1).require("ids", ("a", "b"))


def options(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The arguments and options of all commands, by the path of the command."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from options(inner, f"{name} {part}".strip())
    if not getattr(command, "commands", {}):
        yield from ((name, parameter) for parameter in command.params)


def derived_commands() -> Iterator[tuple[str, Command]]:
    """The commands that are derived from operations, by their paths."""
    for name, target in COMMANDS.items():
        module, _, attribute = target.partition(".")
        yield name, getattr(import_module(f"conspectus.cli.{module}"), attribute)
    for path, (_, modules) in GROUPS.items():
        for module in modules.split():
            table = f"{path.upper().replace(' ', '_')}_COMMANDS"
            commands = getattr(import_module(f"conspectus.cli.{module}"), table)
            yield from ((f"{path} {name}", command) for name, command in commands.items())


def derived_options() -> Iterator[tuple[str, Command, Parameter, Any]]:
    """Each parameter that a derived command offers, with its option."""
    by_command: dict[str, dict[str, Any]] = {}
    for path, option in options(get_command(build_app())):
        by_command.setdefault(path, {})[option.name.removesuffix("_")] = option
    for path, command in derived_commands():
        if isinstance(command, Command):
            for leaf in Derivation(command).leaves():
                yield f"{path} {leaf.name}", command, leaf, by_command[path][leaf.name]


def bounds(declaration: Declaration) -> tuple[float | None, float | None]:
    """The lowest and the highest number that a terminal checks; the engine checks the others."""
    numbers = declaration.range
    if numbers is None:
        return None, None
    highest = None if numbers.setting or isinstance(numbers.highest, str) else numbers.highest
    return None if numbers.above else numbers.lowest, highest


def test_the_options_of_derived_commands_are_those_of_their_operations() -> None:
    options = list(derived_options())
    assert len(options) > 100
    for name, command, leaf, option in options:
        if leaf.hint == Filter:
            continue
        text = cli_declared.help_of(leaf.annotation, leaf.declaration)
        assert option.help.startswith(leaf.declaration.help.removesuffix(".")), name
        assert option.help in {text, text.replace("; repeatable", "")}, name
        limits = option.min, option.max
        assert limits == bounds(leaf.declaration), name
        if isinstance(option, TyperOption):
            has_own_default = leaf.default is OMITTED or leaf.name in command.defaults
            default = list(leaf.default) if isinstance(leaf.default, tuple) else leaf.default
            assert has_own_default or option.required == (default is REQUIRED), name
            assert has_own_default or option.required or (option.default or None) == (default or None), name


def test_no_derived_command_repeats_a_default() -> None:
    repeated = [
        name
        for name, command, leaf, _ in derived_options()
        if leaf.name in command.defaults and command.defaults[leaf.name] == leaf.default
    ]
    assert repeated == []


def declared_fields(
    model: type[BaseModel], above: tuple[type[BaseModel], ...] = ()
) -> Iterator[tuple[str, Any]]:
    """The fields of a schema and of those in it, by their paths."""
    if model in above:
        return
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}", field
        members = [field.annotation, *get_args(field.annotation)]
        members += [inner for part in members for inner in get_args(part)]
        for model_in in {part for part in members if isinstance(part, type) and issubclass(part, BaseModel)}:
            yield from declared_fields(model_in, (*above, model))


def operation_annotations() -> Iterator[Any]:
    """The annotations of all parameters of operations."""
    for operation in OPERATIONS.values():
        yield from (leaf.annotation for parameter in operation.parameters for leaf in parameter.leaves)
        yield from annotated_hints(unwrap(operation.method)).values()


def helps_in(annotation: Any, above: tuple[Any, ...] = ()) -> set[str]:
    """The help of an annotation, and of the fields of the dataclasses in it."""
    if annotation in above:
        return set()
    helps = {declaration_of(annotation).help}
    for part in get_args(annotation):
        helps |= helps_in(part, above)
    if is_dataclass(annotation):
        for hint in annotated_hints(annotation).values():
            helps |= helps_in(hint, (*above, annotation))
    return helps


TOOL_OWN = {
    *("max_tokens", "name", "arguments", "confirm", "window", "of_memory"),
    *("source", "since", "until", "filter", "memories", "facts"),
    "ListArguments.collection",
}
"""Arguments of tools that no operation has, or in another form."""


def test_the_arguments_of_tools_are_those_of_operations() -> None:
    helps = {""}
    for annotation in (*operation_annotations(), *annotated_hints(unwrap(TaskService.search)).values()):
        helps |= helps_in(annotation)
    fields = {
        path: field
        for spec in (*TOOLS.values(), *TEXT_OPERATIONS.values())
        for path, field in declared_fields(spec.arguments)
    }
    assert len(fields) > 80
    foreign = {
        path
        for path, field in fields.items()
        if (field.description or "") not in helps and not {path, path.rpartition(".")[2]} & TOOL_OWN
    }
    assert foreign == set()


def test_an_annotation_of_an_option_has_no_bounds_of_its_own() -> None:
    """The terminal's own options are those without an annotation; the others name what declares them."""
    declared = [
        part
        for hint in vars(shared).values()
        if get_origin(hint) is Annotated
        for part in get_args(hint)[1:]
        if isinstance(part, cli_declared.Declared)
    ]
    assert len(declared) >= 10
    assert all(declaration_of(part.annotation).help for part in declared)
