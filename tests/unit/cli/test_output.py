"""Results of commands as JSON."""

from dataclasses import dataclass, field

from conspectus.cli.output import record_fields, to_json_value


@dataclass(frozen=True)
class Person:
    """A record with fields of each kind that may be empty."""

    name: str
    tags: tuple[str, ...]
    age: int | None
    nickname: str | None = None
    address: str = ""
    friends: tuple["Person", ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    is_known: bool = False
    visits: int = 0
    weight: float = float("nan")


def test_optional_fields_without_content_are_left_out() -> None:
    empty = {"name": "", "tags": [], "age": None, "is_known": False, "visits": 0, "weight": None}
    assert to_json_value(Person("", (), None)) == empty
    nested = to_json_value(Person("Ann", (), None, friends=(Person("", (), None),)))
    assert isinstance(nested, dict)
    assert nested["friends"] == [empty]


def test_what_people_wrote_is_printed_whole() -> None:
    metadata = {"empty": "", "none": None, "list": [], "object": {"inner": {}}}
    printed = to_json_value(Person("Ann", (), None, metadata=dict(metadata)))
    assert isinstance(printed, dict)
    assert printed["metadata"] == metadata


def test_fields_are_left_out_by_name() -> None:
    assert "name" not in record_fields(Person("Ann", (), None), without=frozenset({"name"}))
