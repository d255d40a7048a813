"""One tool for all other operations: those with a text form, and those of the operations table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import Arguments, compact_schema, fixed_names
from conspectus.mcp.channel_tools import channel_context
from conspectus.mcp.document_tools import get_document_inside, list_collections, read_document
from conspectus.mcp.file_tools import find_files, grep, list_files, read_file
from conspectus.mcp.graph_tools import add_facts
from conspectus.mcp.memory_tools import forget, update_memory
from conspectus.mcp.recall_tools import history
from conspectus.mcp.search_tools import explain
from conspectus.mcp.stream_tools import search_streams
from conspectus.mcp.task_tools import search_tasks
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, ToolOptions, ToolSpec, json_of, tool
from conspectus.model.annotations import Range, base_of
from conspectus.model.checks import hints
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.filter_json import filter_from_json, parse_filters
from conspectus.model.jobs import Job
from conspectus.operations.declared import require_remote
from conspectus.operations.operation import (
    OMITTED,
    REQUIRED,
    Operation,
    Parameter,
    default_of,
    member_of,
    record_of,
)
from conspectus.operations.table import OPERATIONS

MAX_NAMED_MISMATCHES = 5
MAX_OPERATION_LIMIT = 200
"""Largest `limit` of an operation."""
_SCOPED_PARAMETERS: Final = frozenset({"stream", "document"})
"""Path parameters that are checked against the scope that the server fixes."""

TEXT_OPERATIONS: Final[Mapping[str, ToolSpec[Any]]] = {
    spec.name: spec
    for spec in (
        *(read_document, list_collections, explain, history, update_memory, forget, add_facts),
        *(search_streams, channel_context, search_tasks),
        *(list_files, read_file, find_files, grep),
    )
}
TABLE_OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in OPERATIONS.values()
    if operation.name not in TEXT_OPERATIONS and not operation.secret and operation.for_models != "never"
}
"""Operations of the table that models may be offered, and that do not answer once only."""


def require_known_operations(options: ToolOptions) -> None:
    """Raise InvalidInput for an added operation that models can never be offered."""
    if unknown := sorted(options.operations - TABLE_OPERATIONS.keys()):
        raise InvalidInput("mcp_operations", f"{unknown[0]!r} is no operation that models can be offered")


class OperationArguments(Arguments):
    """The arguments of operations."""

    name: str = Field("", max_length=100, description="Operation, or a word to find some.")
    arguments: dict[str, Any] | None = Field(None, description="Call it with these; none: describe it.")


def operation_arguments(spec: ToolSpec[Any], call: ToolCall, arguments: Mapping[str, Any]) -> Any:
    """Check the arguments of a tool. Raises InvalidInput."""
    fixed = sorted(fixed_names(call.options.scope) & arguments.keys())
    if fixed:
        raise InvalidInput(fixed[0], "is fixed by this server and cannot be given")
    try:
        return spec.arguments.model_validate(arguments)
    except ValidationError as error:
        raise schema_mismatch(error) from None


def schema_mismatch(error: ValidationError) -> InvalidInput:
    """Return an error that names mismatching arguments, without their values."""
    mismatches = error.errors(include_input=False, include_url=False, include_context=False)
    named = [
        (".".join(map(str, mismatch["loc"])) or "arguments", mismatch["msg"])
        for mismatch in mismatches[:MAX_NAMED_MISMATCHES]
    ]
    more = (
        f"; {len(mismatches) - MAX_NAMED_MISMATCHES} more" if len(mismatches) > MAX_NAMED_MISMATCHES else ""
    )
    first, *others = named
    rest = "".join(f"; {field}: {reason}" for field, reason in others)
    return InvalidInput(first[0], f"{first[1]}{rest}{more}")


@tool("deletes")
async def operations(call: ToolCall, arguments: OperationArguments) -> str:
    """All other operations: read_document, history, update_memory, forget, add_facts, explain, and those on
    streams, channels, tasks, documents, files, collections, alerts, jobs. Without arguments it lists or
    describes them; with arguments ({} if there are none) it calls one.
    """
    offered = list_offered_operations(call)
    if arguments.arguments is None:
        return _describe_operations(call, offered, arguments.name)
    if arguments.name not in offered:
        raise InvalidInput("name", "unknown operation; list them with a part of the name and no arguments")
    spec = offered[arguments.name]
    if isinstance(spec, Operation):
        return await _call_operation(call, spec, arguments.arguments)
    return await spec.run(call, operation_arguments(spec, call, arguments.arguments))


def list_offered_operations(call: ToolCall) -> Mapping[str, ToolSpec[Any] | Operation]:
    """Return the operations by name; with a fixed scope, only those whose target can be checked."""
    table = {
        name: operation
        for name, operation in TABLE_OPERATIONS.items()
        if operation.for_models == "offered" or name in call.options.operations
        if not call.has_fixed_scope or _SCOPED_PARAMETERS.intersection(re.findall(r"\{(\w+)", operation.path))
    }
    return {**TEXT_OPERATIONS, **table}


def _describe_operations(call: ToolCall, offered: Mapping[str, ToolSpec[Any] | Operation], name: str) -> str:
    if (spec := offered.get(name)) is not None:
        return call.page(ResultPage((), _summary_of(spec), _signature(call, spec), between="\n"))
    lines = [f"{name_offered}: {_summary_of(spec_offered)}" for name_offered, spec_offered in offered.items()]
    matching = [line for line in lines if name.casefold() in line.casefold()]
    return call.page(ResultPage(matching, "" if matching else "No such operation.", between="\n"))


def _summary_of(spec: ToolSpec[Any] | Operation) -> str:
    return spec.summary if isinstance(spec, Operation) else spec.description


def _signature(call: ToolCall, spec: ToolSpec[Any] | Operation) -> str:
    if isinstance(spec, Operation):
        return "\n".join(map(_argument, _leaf_parameters(spec))) or "No arguments."
    hidden = {"max_tokens", *fixed_names(call.options.scope)}
    arguments: type[BaseModel] = spec.arguments
    schema = compact_schema(arguments)
    properties = {
        name: property_schema for name, property_schema in schema["properties"].items() if name not in hidden
    }
    return json_of({"properties": properties, "required": schema.get("required", [])})


def _leaf_parameters(operation: Operation) -> list[Parameter]:
    return [
        leaf
        for parameter in operation.parameters
        if parameter.location != "header"
        for leaf in parameter.leaves
    ]


def _argument(parameter: Parameter) -> str:
    """An argument with its type, its range, and its help."""
    declaration = parameter.declaration
    optional = "" if parameter.default is REQUIRED else " (optional)"
    allowed = "" if declaration.range is None else f", {_range(declaration.range)}"
    return f"{parameter.name}: {_type_name(parameter.hint)}{allowed}{optional}. {declaration.help}"


def _range(bounds: Range) -> str:
    lowest = f"above {bounds.lowest:g}" if bounds.above else f"from {bounds.lowest:g}"
    is_open = bounds.highest is None or bounds.setting
    return lowest if is_open else f"{lowest} to {bounds.highest}"


def _type_name(hint: Any) -> str:
    """Describe a type in few words; optional fields of a dataclass have a question mark."""
    members = get_args(hint)
    if hint == Filter:
        return "filter (field=value, or JSON)"
    if is_dataclass(hint):
        field_types = hints(hint)
        named = (f"{field.name}{'' if default_of(field) is REQUIRED else '?'}" for field in fields(hint))
        kinds = (_type_name(field_types[field.name]) for field in fields(hint))
        return "{" + ", ".join(f"{name}: {kind}" for name, kind in zip(named, kinds, strict=True)) + "}"
    if isinstance(hint, NewType):
        return _type_name(base_of(hint))
    origin = get_origin(hint)
    if origin in {Union, UnionType}:
        listed = {get_args(member)[:1] for member in members}
        alternatives = (member for member in members if member is not NoneType and (member,) not in listed)
        return " | ".join(map(_type_name, alternatives))
    return _container_name(hint, origin, members)


def _container_name(hint: Any, origin: Any, members: Sequence[Any]) -> str:
    if origin is None:
        return {"datetime": "time (ISO 8601)"}.get(
            getattr(hint, "__name__", ""), getattr(hint, "__name__", "any")
        )
    if not isinstance(origin, type):
        return " | ".join(repr(literal) for literal in members)
    return "object" if issubclass(origin, Mapping) else f"[{_type_name(members[0])}]"


async def _call_operation(call: ToolCall, operation: Operation, arguments: Mapping[str, Any]) -> str:
    names = {leaf.name for leaf in _leaf_parameters(operation)}
    if unknown := sorted(arguments.keys() - names):
        raise InvalidInput(unknown[0], f"unknown argument; expected: {', '.join(sorted(names)) or 'none'}")
    values = {
        parameter.name: value
        for parameter in operation.parameters
        for value in _method_arguments(parameter, arguments)
    }
    for parameter in operation.parameters:
        require_remote(parameter.name, parameter.annotation, values.get(parameter.name))
    if isinstance(limit := values.get("limit"), int) and not 0 <= limit <= MAX_OPERATION_LIMIT:
        if "limit" in arguments:
            raise InvalidInput("limit", f"must be from 0 to {MAX_OPERATION_LIMIT}")
        values["limit"] = MAX_OPERATION_LIMIT
    if call.has_fixed_scope:
        await _require_inside(call, values)
    answer = await operation.of(call.engine)(**values)
    if isinstance(answer, Job) and operation.status == 202 and not call.has_fixed_scope:
        call.jobs.append(answer)
    return _answer_text(call, answer)


async def _require_inside(call: ToolCall, values: Mapping[str, Any]) -> None:
    """Raise NotFound for a stream or document outside of the scope that the server fixes."""
    if "document" in values:
        await get_document_inside(call, values["document"])
    if "stream" in values:
        address = {"collection": values["collection"]} if "collection" in values else {}
        call.require_inside(
            await call.engine.collections.get_source(values["stream"], **address), name=values["stream"]
        )


def _method_arguments(parameter: Parameter, arguments: Mapping[str, Any]) -> list[Any]:
    """Return the argument of the method, or nothing for its default. Raises InvalidInput."""
    if parameter.location == "header":
        return []
    if parameter.is_spread:
        return [_make_dataclass(record_of(parameter.hint), arguments)]
    if parameter.name in arguments:
        return [_check(parameter.name, parameter.hint, arguments[parameter.name])]
    if parameter.default is REQUIRED:
        raise InvalidInput(parameter.name, "is required")
    return [] if parameter.default is OMITTED else [parameter.default]


def _make_dataclass(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """Make a dataclass, and those in it, of the arguments with the names of their fields."""
    field_types = hints(kind)
    checked_fields: dict[str, Any] = {}
    for field in fields(kind):
        name, hint = member_of(kind, field.name), field_types[field.name]
        if name in arguments:
            checked_fields[field.name] = _check(name, hint, arguments[name])
        elif is_dataclass(hint) and arguments.keys() & {one.name for one in fields(hint)}:
            checked_fields[field.name] = _make_dataclass(hint, arguments)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InvalidInput(name, "is required")
    return kind(**checked_fields)


def _check(name: str, hint: Any, value: Any) -> Any:
    if hint == Filter:
        return _filter(value)
    try:
        return TypeAdapter(_eager_type(hint)).validate_python(to_jsonable_python(value))
    except ValidationError as error:
        raise InvalidInput(name, str(schema_mismatch(error))) from None


def _eager_type(hint: Any) -> Any:
    """Replace iterables by lists: pydantic checks elements of iterables only while they are read."""
    origin, members = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return reduce(or_, map(_eager_type, members))
    return GenericAlias(list, members) if origin is Iterable else hint


def _filter(value: Any) -> Filter:
    if value is None:
        return EVERYTHING
    return filter_from_json(value) if isinstance(value, dict) else parse_filters([str(value)])


def _answer_text(call: ToolCall, answer: Any) -> str:
    """Return an answer as JSON within the budget; its longest list has as many items as fit."""
    value = to_jsonable_python(answer, fallback=str)
    if value is None:
        return "Done."
    if isinstance(value, list):
        return call.data("items", value)
    if not isinstance(value, dict):
        return call.budget.cut(value if isinstance(value, str) else json_of(value))
    lists = [name for name, member in value.items() if isinstance(member, list)]
    if not lists:
        return call.budget.cut(json_of(value))
    longest = max(lists, key=lambda name: len(value[name]))
    return call.data(longest, value.pop(longest), **value)
