"""Builders of numbers and amounts of time."""

import re
from typing import Final

from conspectus.text.late_patterns import re_pattern
from conspectus.time_expressions.points import Amount
from conspectus.time_expressions.timeline import Timeline
from conspectus.time_expressions.vocabulary import DAY, HOUR, MINUTE, SECOND

_COMPACT: Final = re_pattern(r"(?:([0-9]+)h)?(?:([0-9]+)m(?:in)?)?(?:([0-9.]+)s(?:ec)?)?", re.IGNORECASE)
_FINER: Final = {7 * DAY: DAY, DAY: HOUR, HOUR: MINUTE}
_A_FEW: Final = 3


def count_number(_: Timeline, number: int) -> float:
    """Return the value of `five` or `a hundred`."""
    return float(number)


def add_ones(_: Timeline, tens: int, ones: int) -> float | None:
    """Return the value of `twenty-five`."""
    return float(tens + ones) if 20 <= tens < 100 and 0 < ones < 10 else None


def count_with_half(_: Timeline, count: str | float, half: bool | None) -> float:
    """Return a count, and half of one if `and a half` follows."""
    return float(count) + (0.5 if half else 0.0)


def read_compact_amount(_: Timeline, text: str) -> Amount:
    """Return the amount of `1h2m` or `90s`."""
    match = _COMPACT.fullmatch(text)
    texts = match.groups() if match else ()
    parts = [(float(part), unit) for part, unit in zip(texts, (HOUR, MINUTE, SECOND), strict=False) if part]
    unit = parts[-1][1] if parts else SECOND
    return Amount(sum(number * unit for number, unit in parts), unit, unit)


def measure_in_units(_: Timeline, count: str, unit: float) -> Amount:
    """Return the amount of `90sec`."""
    return Amount(float(count) * unit, unit, unit)


def take_fraction(_: Timeline, count: float | None, parts: int, unit: float) -> Amount:
    """Return the amount of `half an hour` or `three quarters of an hour`."""
    finer = _FINER.get(unit, SECOND)
    return Amount((1.0 if count is None else count) / parts * unit, finer, finer)


def measure(
    _: Timeline, count: float, unit: float, dash: str | None, singular: bool | None, half: bool | None
) -> Amount:
    """Return the amount of `5 minutes`, `five-minute` or `two hours and a half`."""
    if half:
        finer = _FINER.get(unit, SECOND)
        return Amount((count + 0.5) * unit, finer, finer)
    precision = unit if count.is_integer() else _FINER.get(unit, SECOND)
    attributive = bool(dash) or (count != 1 and bool(singular))
    return Amount(count * unit, precision, precision, attributive)


def add_smaller_amount(_: Timeline, first: Amount, rest: Amount) -> Amount | None:
    """Return the sum of `1 hour and 20 minutes`."""
    if rest.first_unit >= first.unit or first.attributive:
        return None
    return Amount(first.seconds + rest.seconds, rest.unit, first.first_unit, rest.attributive)


def measure_one_and_half(_: Timeline, unit: float) -> Amount:
    """Return the amount of `hour and a half`."""
    finer = _FINER.get(unit, SECOND)
    return Amount(1.5 * unit, finer, finer)


def measure_one(_: Timeline, unit: float) -> Amount:
    """Return the amount of the unit in `the last minute`."""
    return Amount(unit, unit, unit)


def measure_few(_: Timeline, unit: float) -> Amount:
    """Return the amount of the unit in `the last minutes`."""
    return Amount(_A_FEW * unit, unit, unit)


def require_plausible(timeline: Timeline, amount: Amount) -> Amount | None:
    """Return an amount, unless it is of days on a recording."""
    return amount if timeline.face.wall or amount.unit < DAY else None


def require_length(timeline: Timeline, amount: Amount) -> Amount | None:
    """Return a plausible amount that does not describe a thing."""
    return None if amount.attributive else require_plausible(timeline, amount)


def require_clock_unit(_: Timeline, unit: float) -> float | None:
    """Return a unit that clocks count: not days and weeks."""
    return unit if unit <= HOUR else None
