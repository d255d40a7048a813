"""Bounds, help and examples, read from annotations."""

from typing import Annotated, Literal, NewType

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.annotations import NO_EXAMPLE, Declaration, Example, Length, Range, declaration_of
from conspectus.settings import Settings

Named = NewType("Named", Annotated[str, Example("backup")])
Level = Annotated[float, Range(0, 1), "Level.", Example(0.5)]


def test_an_annotation_declares_help_bounds_and_example() -> None:
    assert declaration_of(Level) == Declaration("Level.", Range(0, 1), example=0.5)
    assert declaration_of(Annotated[str, Length(1, 9)]).length == Length(1, 9)


def test_the_outermost_declaration_counts() -> None:
    level = declaration_of(Annotated[Level, "Lowest level.", Range(0, 2)])
    assert (level.help, level.range, level.example) == ("Lowest level.", Range(0, 2), 0.5)


def test_a_type_that_may_be_none_declares_what_its_other_member_does() -> None:
    assert declaration_of(Level | None) == declaration_of(Level)
    assert declaration_of(Annotated[Level | None, "Or none."]).help == "Or none."


def test_a_new_type_declares_what_its_base_does() -> None:
    assert declaration_of(Named).example == "backup"


@pytest.mark.parametrize("hint", [int, Literal["a"], list[Level], Level | str])
def test_a_type_without_an_annotation_of_its_own_declares_nothing(hint: object) -> None:
    assert declaration_of(hint) == Declaration(example=NO_EXAMPLE)


def reason_against(bounds: Range, number: float) -> str | None:
    """Return why a number is refused, or None."""
    try:
        bounds.require("limit", number, Settings())
    except InvalidInput as refused:
        assert refused.field == "limit"
        return refused.reason
    return None


@pytest.mark.parametrize(
    ("bounds", "number", "reason"),
    [
        (Range(1, 10), 0, "must be from 1 to 10, not 0"),
        (Range(1, 10), 11, "must be from 1 to 10, not 11"),
        (Range(1, 10), 1, None),
        (Range(1, 10), 10, None),
        (Range(-1, 1), 1.5, "must be from -1 to 1, not 1.5"),
        (Range(0), -1, "must be at least 0, not -1"),
        (Range(0), 2**62, None),
        (Range(0, 1, above=True), 0, "must be above 0 and at most 1, not 0"),
        (Range(0, 1, above=True), 1, None),
        (Range(1, "max_limit"), 1_001, "must be from 1 to 1000, not 1001"),
        (Range(1, "max_limit"), 1_000, None),
        (Range(0, 1), float("nan"), "must be from 0 to 1, not nan"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_range(
    bounds: Range, number: float, reason: str | None
) -> None:
    assert reason_against(bounds, number) == reason


def test_help_prints_the_value_of_an_example() -> None:
    assert repr(Annotated[int, Range(1), Example(10)]).endswith("Example(10)]")
