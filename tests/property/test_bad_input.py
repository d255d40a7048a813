"""Every public method with every kind of wrong value in every argument: an error of ours, or it works."""

import inspect
import math
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import datetime
from itertools import product
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin

import pytest
from tests.support.served import served

import conspectus
from conspectus import Engine, Eq, NewDocument, Query, RemoteEngine, Settings
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.model.annotations import base_of
from conspectus.model.checks import Checked, format_value, hints
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical", run_background_jobs="off")
BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
LEFT_OUT = {"connections.watch", "keys.create_first"}
LEFT_OUT |= {f"{service}.start" for service in ("alerts", "connections", "jobs", "retention")}
LEFT_OUT |= {"maintenance.resume", "maintenance.finish_purges"}
"""What never returns, or begins background work."""
SERVICES = sorted(name for name, member in inspect.getmembers(AnyEngine) if isinstance(member, property))
WRONG: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: 0, lambda: -1, lambda: 2**70, lambda: 10**5_000, lambda: 100.5,
    lambda: math.nan, lambda: math.inf, lambda: "", lambda: "\0", lambda: "\ud800", lambda: "*",
    lambda: "a/b", lambda: b"\xff", object, lambda: [], lambda: [None], lambda: [[]], lambda: ["\ud800", 5],
    lambda: {},
    lambda: {"text": 5}, lambda: {1: 2}, lambda: {"and": 7}, lambda: [{"text": "a"}, {}],
    lambda: (part for part in (None, 5)), lambda: datetime.max, lambda: datetime(1, 1, 1), lambda: {"a"},
    lambda: Eq("kind", "page"), lambda: NewDocument("\ud800"), lambda: "x" * 70_000, lambda: -(2**62),
)  # fmt: skip

SIMPLE = {
    str: "x",
    int: 1,
    float: 0.5,
    bool: True,
    bytes: b"x",
    Any: 1,
    datetime: datetime.fromisoformat("2026-01-01T00:00:00Z"),
}


def methods(engine: Engine | RemoteEngine) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of all services by their names, such as `documents.add`."""
    for service in SERVICES:
        for name, method in inspect.getmembers(type(getattr(engine, service)), inspect.isfunction):
            if not name.startswith("_") and f"{service}.{name}" not in LEFT_OUT:
                yield f"{service}.{name}", method


def walk_operations(
    engine: Engine | RemoteEngine,
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """The public methods with the annotations of all arguments, and values for the required ones."""
    for name, method in methods(engine):
        annotations = hints(method)
        annotations.pop("return", None)
        needed = {}
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                inner = annotations.pop(parameter.name)
                annotations |= hints(get_args(inner)[0]) if get_origin(inner) is Unpack else hints(Query)
            elif parameter.default is parameter.empty:
                needed[parameter.name] = build_sample(annotations[parameter.name])
        yield name, annotations, needed


def build_sample(annotation: Any) -> Any:
    """A value of an annotation."""
    annotation = base_of(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return inner[0]
    if origin in (Union, UnionType):
        return build_sample(inner[0])
    if origin is not None:
        return {} if issubclass(origin, Mapping) else [build_sample(inner[0])]
    if is_dataclass(annotation):
        annotations = hints(annotation)
        needed = [
            field.name for field in fields(annotation) if field.default is field.default_factory is MISSING
        ]
        return annotation(**{name: build_sample(annotations[name]) for name in needed})
    return SIMPLE[annotation]


async def call(engine: Any, name: str, arguments: Mapping[str, Any]) -> None:
    method = attrgetter(name)(engine)
    positional = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in arguments
    ]
    named = {key: value for key, value in arguments.items() if key not in positional}
    answer = method(*(arguments[key] for key in positional), **named)
    if inspect.isawaitable(answer):
        await answer
    elif inspect.isasyncgen(answer) and name == "chat.stream":
        async with aclosing(answer) as events:
            await anext(events, None)


async def find_faults(engine: Engine | RemoteEngine, *, share: int) -> dict[str, str]:
    """What wrong values raised that is no error of ours, by method and argument; one in `share` is tried."""
    faults: dict[str, str] = {}
    tried = [
        (name, needed, argument, make)
        for name, annotations, needed in walk_operations(engine)
        for argument in annotations
        for make in WRONG
    ]
    for name, needed, argument, make in tried[::share]:
        try:
            await call(engine, name, {**needed, argument: make()})
        except ConspectusError:
            continue
        except BUGS as fault:
            faults[f"{name}({argument}={format_value(make())})"] = f"{type(fault).__name__}: {fault!s:.80}"
    assert len(tried) > 5_000
    return faults


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


async def test_an_engine_raises_errors_of_ours_alone(engine: Engine) -> None:
    assert await find_faults(engine, share=3) == {}


@pytest.mark.slow
async def test_an_engine_raises_errors_of_ours_alone_for_every_value(engine: Engine) -> None:
    assert await find_faults(engine, share=1) == {}


async def test_a_remote_engine_raises_errors_of_ours_alone(engine: Engine) -> None:
    first = await engine.keys.create_first()
    assert first is not None
    async with (
        served(application(engine, SETTINGS)) as url,
        conspectus.connect(url, api_key=first.secret, settings=SETTINGS) as remote,
    ):
        assert await find_faults(remote, share=13) == {}


def test_the_blocking_engine_raises_them_too(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        for wrong in (None, 100.5, True, "100", math.nan):
            with pytest.raises(
                InvalidInput, match=r"^max_tokens: .* cannot be used; give an integer or a Budget$"
            ):
                engine.window("x", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("opener", [conspectus.open, conspectus.connect])
@pytest.mark.parametrize("wrong", [True, 100.5, b"x", {"a"}])
def test_what_opens_a_store_or_a_server_checks_its_arguments(opener: Callable[..., Any], wrong: Any) -> None:
    names = inspect.signature(opener).parameters
    assert "settings" in names
    for name in names:
        with pytest.raises(InvalidInput, match=f"^{name}: "):
            opener(**{name: wrong})


def is_importable(model: type) -> bool:
    """Whether a module has this class; one with slots replaces another, which lives until it is collected."""
    return getattr(sys.modules[model.__module__], model.__name__, None) is model


CHECKED = [model for model in Checked.__subclasses__() if is_dataclass(model) and is_importable(model)]
MODELS = [Query, *CHECKED]


@pytest.mark.parametrize("kind", MODELS)
def test_a_value_is_checked_when_it_is_made(kind: Any) -> None:
    valid = build_sample(kind)
    for field, make in product(fields(kind), WRONG):
        try:
            changed = replace(valid, **{field.name: make()})
        except InvalidInput as fault:
            assert fault.reason
        else:
            assert isinstance(changed, kind)


async def test_a_mapping_is_a_document_and_a_filter(engine: Engine) -> None:
    await engine.add({"text": "a heron", "title": "birds", "key": "b", "metadata": {"year": 1999}}, wait=True)
    await engine.add([{"text": "a crane"}, "a stork", NewDocument("an ibis")], wait=True)
    await engine.add(({"text": text} for text in ("a gull",)), wait=True)
    documents = (await engine.documents.list()).documents
    assert (documents[0].title, documents[0].key) == ("birds", "b")
    assert len(documents) == 5
    for where in ({"kind": "page"}, {"field": "kind", "eq": "page"}, {"kind": ["page", "task"]}, {}):
        assert len((await engine.retrieve("a", filter=where)).hits) == 5
        assert await engine.documents.count(filter=where) == 5
    assert await engine.documents.count(filter={"metadata.year": 1999, "kind": "page"}) == 1
    with pytest.raises(InvalidInput, match=r"^filter: 'king' is not a field"):
        await engine.documents.count(filter={"king": "page"})
    with pytest.raises(InvalidInput, match=r"^'titel': is not a field of NewDocument; give text, "):
        await engine.add([{"text": "x", "titel": "y"}])
    assert len((await engine.documents.list()).documents) == 5
