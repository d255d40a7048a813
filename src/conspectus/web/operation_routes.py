"""Routes of operations, derived from the table."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from pydantic import BaseModel, create_model

from conspectus.model.checks import hints
from conspectus.operations import Operation, Parameter
from conspectus.operations.operation import REQUIRED
from conspectus.web.deps import EngineOf, ShownOnce, Unhurried
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_schemas import answered, given, limited, requested
from conspectus.web.schemas.base import NAME, Name, RequestModel, ResponseModel

NAMED: Final = frozenset({"collection", "graph", "name"})
"""Parameters that hold the name or the id of something; in a path it may hold a slash."""


def add_routes(section: Section, operations: Iterable[Operation]) -> None:
    """Serve operations below a section's prefix, in their order."""
    for each in operations:
        _add_route(section, each)


def _add_route(section: Section, operation: Operation) -> None:
    body = _body(operation)
    apart = [each for each in operation.parameters if each.location != "body"]

    async def call(**told: Any) -> Any:
        method = operation.of(told.pop("engine"))
        values = _taken(operation, told, told.pop("body", None))
        answer = await method(**values)
        return {operation.wrapped: answer} if operation.wrapped else answer

    call.__name__ = operation.name
    call.__doc__ = operation.summary
    signature = [_keyword("engine", EngineOf), *(part for each in apart for part in _apart(operation, each))]
    if body is not None:
        signature.append(_keyword("body", Annotated[body, Body()]))
    vars(call)["__signature__"] = inspect.Signature(signature)
    section.add_api_route(
        _path(operation.path),
        call,
        methods=[operation.verb],
        status_code=operation.status,
        response_model=_answer(operation),
        responses=problems(),
        dependencies=[
            *([Unhurried] if operation.unhurried else []),
            *([ShownOnce] if operation.secret else []),
        ],
    )


def _path(path: str) -> str:
    for name in NAMED:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    return path


def _answer(operation: Operation) -> Any:
    answer = None if operation.returns is NoneType else answered(operation.returns)
    if not operation.wrapped:
        return answer
    members: dict[str, Any] = {operation.wrapped: (answer, ...)}
    return create_model(f"{operation.wrapped.title()}Answer", __base__=ResponseModel, **members)


def _body(operation: Operation) -> type[BaseModel] | None:
    told = [each for each in operation.parameters if each.location == "body"]
    members: dict[str, Any] = {
        each.name: (_kind(operation, each), ... if each.default is REQUIRED else each.default)
        for each in told
    }
    name = "".join(part.title() for part in (operation.name).split("_"))
    return create_model(f"{name}Body", __base__=RequestModel, **members) if members else None


def _kind(operation: Operation, parameter: Parameter) -> Any:
    kind = limited(operation.name, parameter.name, parameter.hint)
    return Name if parameter.name in NAMED and kind == requested(str) else kind


def _apart(operation: Operation, parameter: Parameter) -> list[inspect.Parameter]:
    """A parameter of the path or query; a dataclass is several, one for each of its fields."""
    if is_dataclass(parameter.hint):
        owner: Any = parameter.hint
        known = hints(owner)
        return [
            _keyword(
                each.name,
                Annotated[limited(owner.__name__, each.name, known[each.name]), Query()],
                REQUIRED if each.default is MISSING else each.default,
            )
            for each in fields(owner)
        ]
    if parameter.location == "path":
        about = f"The id or the name of a {parameter.name}."
        kind = Annotated[str, Path(min_length=1, max_length=NAME, description=about)]
        return [_keyword(parameter.name, kind)]
    return [_keyword(parameter.name, Annotated[_kind(operation, parameter), Query()], parameter.default)]


def _keyword(name: str, kind: Any, default: Any = REQUIRED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _taken(operation: Operation, told: Mapping[str, Any], body: BaseModel | None) -> dict[str, Any]:
    values = {}
    for each in operation.parameters:
        if each.location == "body":
            values[each.name] = given(each.hint, getattr(body, each.name))
        elif is_dataclass(each.hint):
            known = hints(each.hint)
            kind: Any = each.hint
            values[each.name] = kind(**{f.name: given(known[f.name], told[f.name]) for f in fields(kind)})
        else:
            values[each.name] = given(each.hint, told[each.name])
    return values
