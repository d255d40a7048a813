"""Commands that are derived from operations: their arguments and options, and the call."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from importlib import import_module
from pkgutil import resolve_name
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import LISTS, Declared, members_of
from conspectus.cli.options import Common, InScope, Limit
from conspectus.cli.options import Filter as FilterOption
from conspectus.cli.output import cell, progress
from conspectus.cli.session import Session
from conspectus.errors import InvalidInput
from conspectus.model.filter import Filter
from conspectus.model.filter_json import parse_filters
from conspectus.model.memory import Scope
from conspectus.operations.operation import OMITTED, REQUIRED, Operation, Parameter, record_of
from conspectus.text.times import parse_instant

SHORT: Final = {"limit": "--limit -n", "wait": "--wait/--no-wait"}
"""Flags of options that several operations have."""
TAKEN_NAMES: Final = frozenset({"session", *Common.__dataclass_fields__})
"""Parameters of every command; an operation has its own of the same name with `_` at the end."""


class Derivation:
    """The arguments and options of a command, which are those of its operation, and the call."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.operation = operation_at(command.operation)

    def function(self) -> Callable[..., None]:
        """Return the command as a function with a signature."""
        command = self.command

        def run(session: Session, **arguments: Any) -> None:
            named = {name.removesuffix("_"): value for name, value in arguments.items()}
            self._run(session, {**command.fixed, **named})

        parameters = [_keyword("session", Annotated[Session, command.opening]), *self._parameters()]
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = command.help
        return run

    def leaves(self) -> list[Parameter]:
        """Return the parameters that are offered: the arguments in order, then the options."""
        leaves = {
            leaf.name: leaf
            for parameter in self._iterate_parameters()
            if parameter.location != "header" and Scope not in members_of(parameter.hint)
            for leaf in parameter.leaves
        }
        if "collection" not in (self.command.arguments or ()):
            leaves.pop("collection", None)
        required = [name for name, leaf in leaves.items() if leaf.default is REQUIRED]
        names = [*(required if self.command.arguments is None else self.command.arguments)]
        offered = leaves if self.command.only is None else self.command.only.split()
        names += [name for name in offered if name not in names]
        return [leaves[name] for name in names if name not in self.command.fixed]

    def _iterate_parameters(self) -> Iterator[Parameter]:
        """Yield the parameters of the method; in place of the list of records, that of a single record."""
        for parameter in self.operation.parameters:
            if parameter.name == self.command.element:
                yield replace(parameter, hint=get_args(parameter.hint)[0], is_spread=True)
            else:
                yield parameter

    def _parameters(self) -> Iterator[inspect.Parameter]:
        if any(Scope in members_of(parameter.hint) for parameter in self.operation.parameters):
            yield _keyword("scope", InScope)
        for leaf in self.leaves():
            yield self._parameter(leaf)
        if self.command.extra is not None:
            yield _keyword("extra", self.command.extra)
        if self.command.limit:
            yield _keyword("limit", Limit, self.command.limit)

    def _parameter(self, leaf: Parameter) -> inspect.Parameter:
        if leaf.hint == Filter:
            return _keyword(leaf.name, FilterOption, [])
        usage = self.command.arguments or {}
        is_argument = leaf.name in usage or (self.command.arguments is None and leaf.default is REQUIRED)
        default = self.command.defaults.get(leaf.name, leaf.default)
        kind = _terminal_type(leaf.hint)
        flags = self.command.options.get(leaf.name, SHORT.get(leaf.name, f"--{leaf.name.replace('_', '-')}"))
        metavar = usage.get(leaf.name, leaf.name.upper())
        declared = Declared(leaf.annotation, "", () if is_argument else flags.split(), is_argument, metavar)
        if default is OMITTED:
            default = None
        elif isinstance(default, tuple | Mapping):
            default = list(default)
        name = f"{leaf.name}_" if leaf.name in TAKEN_NAMES else leaf.name
        return _keyword(name, Annotated[kind | None if default is None else kind, declared], default)

    def _run(self, session: Session, arguments: Arguments) -> None:
        if self.command.prepare is not None:
            self.command.prepare(session, arguments)
        result = self._call(session, arguments)
        if self.command.show is not None:
            self.command.show(session, result, arguments)
            return
        document = result
        if self.command.document is not None:
            document = {member: arguments[name] for member, name in self.command.document.items()}
        if isinstance(self.command.picture, str):
            session.show(document, cell(self.command.picture.format(result=result, **arguments)))
        elif self.command.nothing is None:
            session.show(document, self.command.picture(result))
            if hasattr(result, "next"):
                session.note_next(result)
        else:
            picture = self.command.picture(result)
            session.show_or_exit(document, picture, self.command.nothing, matches=_records_of(result))
            if hasattr(result, "next"):
                session.note_next(result)

    def _call(self, session: Session, arguments: Arguments) -> Any:
        """Call the operation, with progress bars if it reports progress, and return the result to show."""
        if self.command.service is None:
            call = self.operation.of(cast(Any, session.engine))
        else:
            call = getattr(self.command.service(session), self.operation.method.__name__)
        named = dict(self._name_arguments(session, arguments))
        if "progress" in inspect.signature(self.operation.method).parameters:
            with progress() as bars:
                result = call(**named, progress=bars)
        else:
            result = call(**named)
        if self.command.element:
            [result] = result
        return result[: arguments["limit"]] if self.command.limit else result

    def _name_arguments(self, session: Session, arguments: Arguments) -> Iterator[tuple[str, object]]:
        """Yield the arguments of the method by name."""
        collection = session.common.collection if self.command.any_collection else session.collection
        arguments = {"collection": collection, **arguments}
        if "collection" in self.operation.local:
            yield "collection", arguments["collection"]
        for parameter in self._iterate_parameters():
            name = parameter.name
            if Scope in members_of(parameter.hint):
                scope = arguments[name]
                yield name, scope.scope() if isinstance(scope, InScope) else scope
            elif parameter.is_spread:
                fields = {
                    leaf.name: _convert(leaf.hint, arguments[leaf.name])
                    for leaf in parameter.leaves
                    if leaf.name in arguments
                }
                record = record_of(parameter.hint)(**fields)
                yield name, [record] if name == self.command.element else record
            elif name in arguments and not (arguments[name] is None and parameter.default is OMITTED):
                yield name, _convert(parameter.hint, arguments[name])


def operation_at(path: str) -> Operation:
    """Return the operation of a module and method, or a method of a service as an operation."""
    if path.startswith("engine."):
        return Operation(resolve_name(f"conspectus.{path}"), "POST", "")
    module = import_module(f"conspectus.operations.{path.partition(':')[0]}")
    rows = vars(module).values()
    operations = (row for group in rows if isinstance(group, tuple) for row in group)
    method_at_path = resolve_name(f"conspectus.operations.{path}")
    return next(row for row in operations if isinstance(row, Operation) and row.method is method_at_path)


def _records_of(listing: Any) -> Sequence[object]:
    """Return the records of a list or of a page, which are its first field."""
    records: Sequence[object] = (
        getattr(listing, fields(listing)[0].name) if is_dataclass(listing) else listing
    )
    return records


def _terminal_type(hint: Any) -> Any:
    """Return the type that Typer reads from a command line."""
    if hint == Filter:
        return list[str]
    members = members_of(hint)
    if any(get_origin(member) is Mapping for member in members):
        return list[str]
    if datetime in members:
        return str
    for member in members:
        if get_origin(member) in LISTS:
            element: Any = _terminal_type(get_args(member)[0])
            return list[str] if get_origin(element) is Literal else list[element]
    return members[0]


def _convert(hint: Any, value: Any) -> Any:
    """Return a value of a command line as the method takes it."""
    members = members_of(hint)
    if hint == Filter:
        return parse_filters(value) if isinstance(value, list) else value
    if isinstance(value, list):
        return properties(value) if any(get_origin(member) is Mapping for member in members) else tuple(value)
    words = [get_args(member) for member in members if get_origin(member) is Literal]
    if isinstance(value, str) and datetime in members and str not in members and (value,) not in words:
        return parse_instant(value)
    return value


def properties(pairs: Sequence[str]) -> dict[str, Any]:
    """Return values by name from KEY=VALUE, parsed as JSON if possible. Raises InvalidInput."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise InvalidInput("property", f"{pair!r} is not KEY=VALUE")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values


def _keyword(name: str, annotation: Any, default: Any = REQUIRED) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is REQUIRED else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
