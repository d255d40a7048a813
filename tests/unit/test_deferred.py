"""Deferred dataclasses behave as those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from conspectus.deferred import DeferredMethod, dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list, compare=False, repr=False)
    unit: str = field(default="m", kw_only=True)
    scale: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = ""


@dataclass(frozen=True, slots=True)
class OwnEquality:
    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnEquality)


@dataclass(frozen=True, slots=True)
class OwnHash:
    x: int

    def __hash__(self) -> int:
        return 7


class Plain(Point):
    """A subclass that is no dataclass itself."""


def build_standard() -> type[Any]:
    """The same class by the decorator of the standard library."""
    body = {name: member for name, member in vars(Point).items() if name in ("__post_init__", "__doc__")}
    fields = [(definition.name, definition.type, definition) for definition in dataclasses.fields(Point)]
    return dataclasses.make_dataclass("Point", fields, namespace=body, frozen=True, slots=True)


def test_values_and_defaults_are_set() -> None:
    point = Point(1, unit="km")
    assert (point.x, point.y, point.names, point.unit) == (1, 0, [], "km")
    assert point.names is not Point(1).names
    with pytest.raises(ValueError, match="x"):
        Point(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_the_signature_is_that_of_the_standard_decorator() -> None:
    assert str(inspect.signature(Point)) == str(inspect.signature(build_standard()))
    assert Point.__init__.__qualname__ == "Point.__init__"


def test_equality_hash_and_text() -> None:
    one, same, other = Point(1, names=["a"]), Point(1, names=["b"]), Point(2)
    assert one == same and hash(one) == hash(same) and one != other
    assert one != Named(1) and one != (1, 0, "m")
    assert repr(Point(1, 2)) == "Point(x=1, y=2, unit='m')"
    assert repr(Named(1, name="n")) == "Named(x=1, y=0, unit='m', name='n')"
    assert {one: "found"}[same] == "found"


@pytest.mark.parametrize("kind", [Point, Named])
def test_fields_stay_as_they_are(kind: type[Point]) -> None:
    point = kind(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert not hasattr(point, "__dict__") and point.x == 1


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        Point(1).other = 2  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'other'"):
        del Point(1).other  # type: ignore[attr-defined]


def test_a_plain_subclass_has_attributes_of_its_own() -> None:
    point = Plain(1)
    point.other = 2  # type: ignore[attr-defined]
    assert vars(point) == {"other": 2}
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    del point.other  # type: ignore[attr-defined]
    assert vars(point) == {} and point == Plain(1) and point != Point(1)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda point: pickle.loads(pickle.dumps(point))])
@pytest.mark.parametrize("point", [Point(1, names=["a"]), Named(1, name="n")])
def test_copies_are_equal(point: Point, again: Callable[[Point], Point]) -> None:
    copied = again(point)
    assert copied is not point and copied == point and copied.names == point.names


def test_the_functions_of_the_standard_library_take_them() -> None:
    assert dataclasses.replace(Point(1), y=2) == Point(1, 2)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 0, "names": [], "unit": "m"}
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_methods_of_the_class_itself_are_kept() -> None:
    assert OwnEquality(1) == OwnEquality(2) and hash(OwnEquality(1)) == hash((1,))
    assert hash(OwnHash(1)) == 7 and OwnHash(1) != OwnHash(2)


def test_a_subclass_by_the_standard_decorator_is_frozen_too() -> None:
    frozen = dataclasses.dataclass(frozen=True)(
        type("Made", (Point,), {"__annotations__": {"z": int}, "z": 3})
    )
    assert repr(frozen(1)) == "Made(x=1, y=0, unit='m', z=3)"
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Made", (Point,), {"__annotations__": {"z": int}}))


def test_nothing_is_compiled_before_it_is_used() -> None:
    kind = dataclass(frozen=True, slots=True)(type("Made", (), {"__annotations__": {"x": int}}))
    deferred = {name for name, member in vars(kind).items() if isinstance(member, DeferredMethod)}
    assert deferred == {"__init__", "__repr__", "__eq__", "__hash__"}
    kind(1)
    assert {name for name in deferred if not isinstance(vars(kind)[name], DeferredMethod)} == {"__init__"}


def test_threads_may_use_a_class_for_the_first_time_at_once() -> None:
    for _ in range(50):
        kind = dataclass(frozen=True, slots=True)(type("Made", (), {"__annotations__": {"x": int}}))
        start, seen = threading.Barrier(4), []

        def use(kind: Any = kind, start: threading.Barrier = start, seen: list[int] = seen) -> None:
            start.wait()
            seen.append(hash(kind(1)))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [hash((1,))] * 4
