"""Routes of operations, derived from the table."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from http import HTTPStatus
from types import NoneType
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query, Response
from pydantic import BaseModel, create_model

from conspectus.engine import Engine
from conspectus.model.checks import hints
from conspectus.model.filter import Filter, filter_from_json, parse_filters
from conspectus.operations import OPERATIONS, Operation, Parameter
from conspectus.operations.operation import REQUIRED
from conspectus.web.deps import (
    EngineOf,
    Filters,
    IfMatch,
    IfNoneMatch,
    ShownOnce,
    Unhurried,
    require_match,
    tag_of,
    unless_held,
)
from conspectus.web.logs import API
from conspectus.web.openapi import Responses, Section, accepted, problems, with_tag
from conspectus.web.operation_schemas import TEXTS, answered, given, limited, record_of, request_model
from conspectus.web.schemas.base import IDENTIFIER, NAME, RequestModel, ResponseModel

SLASHED: Final = frozenset({"collection", "graph", "stream"})
"""Parameters of a path that may hold a slash."""
IDS: Final = frozenset({"alert", "document", "job", "source"})
"""Parameters of a path that are ids."""


def add_routes(section: Section, operations: Iterable[Operation]) -> None:
    """Serve operations below a section's prefix, in their order."""
    for each in operations:
        _add_route(section, each)


def _add_route(section: Section, operation: Operation) -> None:
    body = _body(operation)

    async def call(**told: Any) -> Any:
        engine, response = told.pop("engine"), told.pop("response", None)
        tag = told.pop("if_match", told.pop("if_none_match", None))
        values = _taken(operation, told, told.pop("body", None))
        if tag is not None and operation.verb == "PATCH":
            await _require_match(operation, engine, values, tag)
        answer = await operation.of(engine)(**values)
        if response is not None:
            response.headers["Location"] = f"{API}/jobs/{answer.id}"
        if operation.tagged and operation.verb == "GET":
            shown = _answer(operation).model_validate(answer)
            return unless_held(shown, tag_of(shown), tag)
        return {operation.wrapped: answer} if operation.wrapped else answer

    call.__name__ = operation.name
    call.__doc__ = operation.summary
    signature = [_keyword("engine", EngineOf), *_headers(operation)]
    signature += [
        part for each in operation.parameters if each.location != "body" for part in _apart(operation, each)
    ]
    if body is not None:
        signature.append(_keyword("body", Annotated[body, Body()]))
    vars(call)["__signature__"] = inspect.Signature(signature)
    section.add_api_route(
        _path(operation.path),
        call,
        methods=[operation.verb],
        status_code=operation.status,
        response_model=_answer(operation),
        responses=_responses(operation),
        dependencies=[
            *([Unhurried] if operation.unhurried else []),
            *([ShownOnce] if operation.secret else []),
        ],
    )


def _headers(operation: Operation) -> list[inspect.Parameter]:
    """The headers that a request has, and the response whose headers an answer sets."""
    if operation.status == HTTPStatus.ACCEPTED:
        return [_keyword("response", Response)]
    if operation.tagged and operation.verb == "GET":
        return [_keyword("if_none_match", IfNoneMatch, None)]
    return [_keyword("if_match", IfMatch, None)] if operation.tagged else []


def _responses(operation: Operation) -> Responses:
    if operation.status == HTTPStatus.ACCEPTED:
        return accepted(*operation.problems)
    if operation.tagged and operation.verb == "GET":
        return with_tag(*operation.problems)
    return problems(*([412] if operation.tagged else []), *operation.problems)


async def _require_match(
    operation: Operation, engine: Engine, values: Mapping[str, Any], header: str
) -> None:
    """Raise PreconditionFailed unless what the GET at the same path answers has a tag of this header."""
    read = next(each for each in OPERATIONS.values() if (each.verb, each.path) == ("GET", operation.path))
    ((kind, name),) = ((each.name, values[each.name]) for each in read.parameters if each.location == "path")
    shown = _answer(read).model_validate(await read.of(engine)(**{kind: name}))
    require_match(tag_of(shown), header, kind=kind, name=name)


def _path(path: str) -> str:
    for name in SLASHED:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    return path


def _answer(operation: Operation) -> Any:
    answer = None if operation.returns is NoneType else answered(operation.returns)
    if not operation.wrapped:
        return answer
    members: dict[str, Any] = {operation.wrapped: (answer, ...)}
    name = "".join(part.title() for part in operation.name.split("_"))
    return create_model(f"{name}Answer", __base__=ResponseModel, **members)


def _body(operation: Operation) -> type[BaseModel] | None:
    told = [each for each in operation.parameters if each.location == "body"]
    members: dict[str, Any] = {
        each.name: (_kind(operation, each), ... if each.default is REQUIRED else _default(each))
        for each in told
        if each.name != operation.spread
    }
    base = next((request_model(record_of(each.hint)) for each in told if each.name == operation.spread), None)
    name = "".join(part.title() for part in (operation.name).split("_"))
    return create_model(f"{name}Body", __base__=base or RequestModel, **members) if members else base


def _kind(operation: Operation, parameter: Parameter) -> Any:
    if parameter.hint == Filter and parameter.location == "query":
        return Filters
    return limited(operation.name, parameter.name, parameter.hint, TEXTS.get(parameter.name))


def _default(parameter: Parameter) -> Any:
    return None if parameter.hint == Filter else parameter.default


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
        is_id = parameter.name in IDS
        about = f"The id {'' if is_id else 'or the name '}of {_with_article(parameter.name)}."
        most = IDENTIFIER if is_id else NAME
        kind = Annotated[str, Path(min_length=1, max_length=most, description=about)]
        return [_keyword(parameter.name, kind)]
    return [_keyword(parameter.name, Annotated[_kind(operation, parameter), Query()], _default(parameter))]


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _keyword(name: str, kind: Any, default: Any = REQUIRED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _taken(operation: Operation, told: Mapping[str, Any], body: BaseModel | None) -> dict[str, Any]:
    values = {}
    for each in operation.parameters:
        value = getattr(body, each.name, None) if each.location == "body" else told.get(each.name)
        if each.name == operation.spread:
            values[each.name] = given(record_of(each.hint), body)
        elif each.hint == Filter:
            read = parse_filters if each.location == "query" else filter_from_json
            values[each.name] = each.default if value is None else read(value)
        elif is_dataclass(each.hint) and each.location != "body":
            known = hints(each.hint)
            kind: Any = each.hint
            values[each.name] = kind(**{f.name: given(known[f.name], told[f.name]) for f in fields(kind)})
        else:
            values[each.name] = given(each.hint, value)
    return values
