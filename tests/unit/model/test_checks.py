"""Checks of values against annotations: what is taken, what becomes of it, and what a refusal says."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NewType, Protocol, TypedDict, Unpack

import numpy as np
import pytest

from conspectus.errors import InvalidInput
from conspectus.model.checks import LARGEST, Checked, How, add_checks, format_value, taker

Name = NewType("Name", str)
STRICT, ANY_NUMBER = How(), How(any_number=True)


def take(annotation: Any, value: object, how: How = STRICT) -> Any:
    return taker(annotation, how)("x", value)


@dataclass(frozen=True, slots=True)
class Point(Checked):
    zoned: ClassVar = ("at",)
    number: int
    names: tuple[str, ...] = ()
    at: datetime | None = None


class Closing(Protocol):
    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, ""), (Name, "a"), (bytes, b""), (bool, False), (int, LARGEST), (int, -LARGEST), (float, 1),
        (float, 1.5), (None | int, None), (int | str, "a"), (int | str, 1), (Literal["a", "b"], "b"),
        (Mapping[str, object], {"a": object()}), (Mapping[str, str], {"a": "b"}), (Callable[[], int], len),
        (datetime, datetime.min), (Any, object()), (object, None), (Sequence[str], ["a"]), (list[int], [1]),
        (Sequence[str | None], ["a", None]), (Sequence[Any], [1, "a"]), (Closing, io.BytesIO()),
    ],
)  # fmt: skip
def test_a_value_of_its_annotation_is_taken_as_it_is(annotation: Any, value: object) -> None:
    argument = take(annotation, value)
    assert argument == value
    assert isinstance(value, list) or argument is value


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (str, 1, "1 cannot be used; give a string"),
        (str, None, "None cannot be used; give a string"),
        (str, b"a", "b'a' cannot be used; give a string"),
        (bytes, "a", "'a' cannot be used; give bytes"),
        (bool, 1, "1 cannot be used; give true or false"),
        (int, True, "True cannot be used; give an integer"),
        (int, 1.0, "1.0 cannot be used; give an integer"),
        (int, LARGEST + 1, "an integer of more than 64 bits cannot be used; give an integer"),
        (int, -LARGEST - 1, "an integer of more than 64 bits cannot be used; give an integer"),
        (float, True, "True cannot be used; give a finite number"),
        (float, float("nan"), "nan cannot be used; give a finite number"),
        (float, float("-inf"), "-inf cannot be used; give a finite number"),
        (float, 2**63, "an integer of more than 64 bits cannot be used; give a finite number"),
        (int | None, "1", "'1' cannot be used; give an integer or None"),
        (int | str | None, 1.5, "1.5 cannot be used; give an integer, a string or None"),
        (Literal["a", "b"], "c", "'c' cannot be used; give 'a' or 'b'"),
        (Literal["a"], ["a"], "a value of type list cannot be used; give 'a'"),
        (
            Mapping[str, object],
            {1: 2},
            "a value of type dict cannot be used; give a mapping with strings as keys",
        ),
        (Mapping[str, str], {"a": 2}, "a value of type dict cannot be used; give a mapping of strings"),
        (Callable[[], int], 1, "1 cannot be used; give a function"),
        (datetime, "2026-01-05", "'2026-01-05' cannot be used; give a datetime"),
        (InvalidInput, 1, "1 cannot be used; give an InvalidInput"),
        (Closing, 1, "1 cannot be used; give a Closing"),
        (Sequence[str], "ab", "'ab' cannot be used; give a list"),
        (Sequence[str], b"ab", "b'ab' cannot be used; give a list"),
        (Sequence[str], {"a": "b"}, "a value of type dict cannot be used; give a list"),
        (Sequence[str], (letter for letter in "ab"), "a value of type generator cannot be used; give a list"),
        (tuple[int, int], [1], "a value of type list cannot be used; give 2 values"),
        (tuple[int, int], [1, 2, 3], "a value of type list cannot be used; give 2 values"),
        (str, "x" * 100, None),
    ],
)
def test_a_refusal_shows_the_value_and_what_is_allowed(
    annotation: Any, value: object, reason: str | None
) -> None:
    if reason is None:
        assert len(format_value(value)) == 60
        return
    with pytest.raises(InvalidInput) as refused:
        take(annotation, value)
    assert (refused.value.field, refused.value.reason) == ("x", reason)


@pytest.mark.parametrize(
    ("annotation", "value", "field"),
    [
        (Sequence[str], ["a", 1], "x[1]"),
        (tuple[float, ...], [1.0, float("nan")], "x[1]"),
        (tuple[float, ...], (1, True), "x[1]"),
        (tuple[int, ...], np.array([1.5]), "x[0]"),
        (tuple[tuple[int, int], ...], [(1, 2), (3,)], "x[1]"),
        (tuple[tuple[int, int], ...], [(1, 2), (3, "4")], "x[1][1]"),
        (Sequence[Point], [Point(1), 2], "x[1]"),
        (Sequence[Point], [{"number": "1"}], "number"),
    ],
)
def test_the_element_at_fault_is_named(annotation: Any, value: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        take(annotation, value)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (tuple[str, ...], ["a", "b"], ("a", "b")),
        (tuple[float, ...], np.array([1.5, 2.0], dtype=np.float32), (1.5, 2.0)),
        (tuple[float, ...], (1e308, 1e308), (1e308, 1e308)),
        (tuple[float, ...], range(3), (0, 1, 2)),
        (tuple[int, int], [1, 2], (1, 2)),
        (tuple[tuple[int, int], ...], [[1, 2]], ((1, 2),)),
        (Sequence[int], (1, 2), [1, 2]),
        (Sequence[str], (), ()),
        (Point, {"number": 1, "names": ["a"]}, Point(1, ("a",))),
        (Sequence[Point], [{"number": 1}, Point(2)], [Point(1), Point(2)]),
    ],
)
def test_what_can_be_read_becomes_what_the_annotation_says(
    annotation: Any, value: object, expected: object
) -> None:
    assert take(annotation, value) == expected


@pytest.mark.parametrize("value", [{"a"}, frozenset({"a"}), {"a": 1}.keys()])
def test_a_set_for_a_sequence_can_be_counted_off(value: object) -> None:
    for annotation in (Sequence[str], list[str], tuple[str, ...]):
        assert take(annotation, value)[0] == "a"


def test_elements_of_an_iterator_are_checked_as_they_come() -> None:
    elements = take(Iterable[str], iter(["a", 1]))
    assert next(elements) == "a"
    with pytest.raises(InvalidInput, match="1 cannot be used"):
        next(elements)


def test_any_number_may_be_compared_with_and_a_truth_value_is_none() -> None:
    for number in (2**70, float("inf")):
        assert take(int | float, number, ANY_NUMBER) == number
    for annotation in (int, float):
        with pytest.raises(InvalidInput):
            take(annotation, True, ANY_NUMBER)


def test_a_reader_makes_an_instance_of_a_mapping() -> None:
    how = How({datetime: lambda mapping: datetime(mapping["year"], 1, 1)})
    assert take(datetime | None, {"year": 2026}, how) == datetime(2026, 1, 1)
    assert take(Sequence[datetime], [{"year": 2026}], how) == [datetime(2026, 1, 1)]


@pytest.mark.parametrize(
    ("mapping", "field", "reason"),
    [
        ({"number": 1, "color": 2}, "'color'", "is not a field of Point; give number, names, at"),
        ({1: 2}, "1", "is not a field of Point; give number, names, at"),
        ({}, "Point", "missing 1 required positional argument: 'number'"),
        ({"number": None}, "number", "None cannot be used; give an integer"),
        ({"number": 1, "at": datetime(2026, 1, 5)}, "at", "must have a zone"),
    ],
)
def test_a_mapping_has_the_fields_of_its_class(mapping: object, field: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        take(Point, mapping)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_a_default_is_not_checked_and_an_instant_keeps_its_zone() -> None:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    assert Point(1).names == ()
    assert Point(1, at=now).at is now
    assert Point(1, ["a"]).names == ("a",)  # type: ignore[arg-type]


class Options(TypedDict, total=False):
    limit: int
    names: tuple[str, ...]


def return_arguments(first: int, /, second: str = "b", *rest: object, **options: Unpack[Options]) -> object:
    return first, second, rest, options


async def return_later(first: int) -> int:
    return first


def test_arguments_are_checked_by_position_and_name() -> None:
    call: Any = add_checks(return_arguments, How())
    assert call(1) == (1, "b", (), {})
    assert call(1, "c", None, 2, limit=3, names=["a"]) == (1, "c", (None, 2), {"limit": 3, "names": ("a",)})
    for args, named, field in (
        (("1",), {}, "first"), ((1, 2), {}, "second"), ((1,), {"second": 2}, "second"),
        ((1,), {"limit": "3"}, "limit"), ((1,), {"names": "a"}, "names"), ((1,), {"color": 1}, "color"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as refused:
            call(*args, **named)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match=r"is not an argument; give .*limit, names"):
        call(1, color="red")


async def test_an_asynchronous_function_stays_one() -> None:
    call = add_checks(return_later, How())
    assert await call(1) == 1
    with pytest.raises(InvalidInput):
        await call("1")  # type: ignore[arg-type]
    assert call.__name__ == "return_later"
