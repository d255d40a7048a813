"""Declarations of the parameters of all operations."""

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.model.alerts import NewAlert
from conspectus.model.annotations import annotated_hints, declaration_of
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.channels import ChannelQuery
from conspectus.model.files import Grep
from conspectus.model.graph import GraphExpansion, NewEdge, Traversal
from conspectus.model.memory import MemoryQuery, MemorySelection, Retention, Scope
from conspectus.model.query import Budget, Query
from conspectus.model.stream_summaries import SummaryRequest
from conspectus.model.streams import StreamQuery
from conspectus.operations.operation import REQUIRED as REQUIRED_VALUE
from conspectus.operations.operation import Operation, Parameter, default_of
from conspectus.operations.table import OPERATIONS
from conspectus.settings import Settings


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=Settings(embedder="none")) as opened:
        yield opened


def leaf_parameters() -> Iterator[tuple[str, Parameter]]:
    for operation in OPERATIONS.values():
        for parameter in operation.parameters:
            yield from ((f"{operation.name}.{leaf.name}", leaf) for leaf in parameter.leaves)


def is_number(parameter: Parameter) -> bool:
    optional = NoneType in get_args(parameter.hint)
    members = set(get_args(parameter.hint)) if optional else {parameter.hint}
    return members <= {int, float, NoneType}


def test_each_parameter_has_help() -> None:
    assert [name for name, leaf in leaf_parameters() if not leaf.declaration.help.endswith(".")] == []


def test_a_sole_required_parameter_is_given_by_position() -> None:
    keyword_only = []
    for operation in OPERATIONS.values():
        parameters = list(inspect.signature(operation.method).parameters.values())[1:]
        required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
        required = [parameter for parameter in required if parameter.kind != inspect.Parameter.VAR_KEYWORD]
        if len(required) == 1 and required[0].kind == inspect.Parameter.KEYWORD_ONLY:
            keyword_only.append(f"{operation.name}({required[0].name}=)")
    assert keyword_only == []


def test_each_number_has_a_range() -> None:
    numbers = [(name, leaf) for name, leaf in leaf_parameters() if is_number(leaf)]
    assert len(numbers) > 100
    assert [name for name, leaf in numbers if leaf.declaration.range is None] == []


def test_each_setting_that_bounds_a_number_exists() -> None:
    ranges = (leaf.declaration.range for _, leaf in leaf_parameters())
    named = {bounds.setting for bounds in ranges if bounds is not None and bounds.setting}
    assert "max_page_rows" in named
    assert [name for name in named if not isinstance(getattr(Settings(), name, None), int)] == []


def wrong_numbers(parameter: Parameter, settings: Settings) -> Iterator[float]:
    """Numbers beside the range of a parameter."""
    bounds = parameter.declaration.range
    assert bounds is not None
    yield bounds.lowest - 1
    if bounds.highest is not None:
        yield (getattr(settings, bounds.setting) if bounds.setting else bounds.highest) + 1


def wrong_arguments() -> Iterator[tuple[Operation, str, float]]:
    """Arguments out of range, of methods that take them by themselves."""
    for operation in OPERATIONS.values():
        owned = {field.name for field in fields(operation.fields_of)} if operation.fields_of else set()
        for parameter in operation.parameters:
            if parameter.declaration.range is not None and parameter.name not in owned:
                numbers = wrong_numbers(parameter, Settings())
                yield from ((operation, parameter.name, number) for number in numbers)


async def test_an_engine_refuses_each_argument_out_of_range(engine: Engine) -> None:
    wrong = list(wrong_arguments())
    assert len(wrong) > 50
    for operation, name, number in wrong:
        with pytest.raises(InvalidInput) as refused:
            await operation.of(engine)(**{name: number})
        assert refused.value.field == name, operation.name


KINDS = (
    *(Query, ChannelQuery, MemoryQuery, StreamQuery, SummaryRequest, Grep, GraphExpansion, Traversal),
    *(NewAlert, NewCaption, NewEdge, CaptionRange, MemorySelection, Retention, Budget),
)
REQUIRED: dict[str, Any] = {
    **dict.fromkeys(("query", "channel", "stream", "pattern", "name", "text", "source", "target"), "x"),
    "scope": Scope(),
    "max_tokens": 1,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataclass_refuses_each_field_out_of_range(kind: Any) -> None:
    required = {
        field.name: REQUIRED[field.name] for field in fields(kind) if default_of(field) is REQUIRED_VALUE
    }
    ranges = {name: declaration_of(hint).range for name, hint in annotated_hints(kind).items()}
    fixed = {name: bounds for name, bounds in ranges.items() if bounds is not None and not bounds.setting}
    assert fixed
    for name, bounds in fixed.items():
        highest = [bounds.highest + 1] if isinstance(bounds.highest, int | float) else []
        for number in (bounds.lowest - 1, *highest):
            with pytest.raises(InvalidInput, match=f"{name}: must be "):
                kind(**{**required, name: number})


@pytest.mark.parametrize("wrong", [{"limit": 1_001}, {"limit": -1}, {"thread_messages": 101}])
async def test_a_query_is_checked_against_the_settings(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must be from 0 to 10"):
        await engine.retrieve("x", **wrong)
    with pytest.raises(InvalidInput, match=r"graph\.hops: must be from 0 to 5"):
        await engine.retrieve("x", graph=GraphExpansion(hops=6))
