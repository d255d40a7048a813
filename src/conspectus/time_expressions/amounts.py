"""Numbers and amounts of time: `five`, `half an hour`, `1h2m`, `one and a half minutes`."""

import re
from dataclasses import dataclass
from typing import Final

from conspectus.time_expressions.language import DAY, HOUR, MINUTE, SECOND, Language
from conspectus.time_expressions.tokens import Words

_COMPACT: Final = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m(?:in)?)?(?:([0-9.]+)s(?:ec)?)?", re.IGNORECASE)
_FINER: Final = {7 * DAY: DAY, DAY: HOUR, HOUR: MINUTE}

_A_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Amount:
    """`unit` is what it was said in; `describes` that it stands like an adjective (`five minute`)."""

    seconds: float
    unit: float
    describes: bool = False


class AmountReader:
    """Reads them where they stand; every method gives what it read, and where it ends."""

    def __init__(self, words: Words, language: Language) -> None:
        self._words = words
        self._language = language

    def number(self, index: int) -> tuple[float, int] | None:
        """Digits or number words, with `and a half` behind."""
        plain = self._words.number(index)
        read = self._spelt(index) if plain is None else (plain, index + 1)
        if read is None:
            return None
        half = self._half_behind(read[1])
        return read if half is None else (read[0] + 0.5, half)

    def amount(self, index: int, *, whole: bool = True) -> tuple[Amount, int] | None:
        """A number and a unit; with `whole` all that follow in smaller units, too."""
        read = self._one(index)
        while read is not None and whole:
            after = read[1] + (self._words.text(read[1]) in self._language.conjunction)
            more = self._one(after)
            if more is None or more[0].unit >= read[0].unit or read[0].describes:
                break
            total = Amount(read[0].seconds + more[0].seconds, more[0].unit, more[0].describes)
            read = total, more[1]
        return read

    def one(self, index: int) -> tuple[Amount, int] | None:
        """A unit without a number, as in `the last minute`; several of them, as in `minutes`, are a few."""
        unit = self.unit(index)
        if unit is None:
            return None
        half = self._half_behind(index + 1)
        if half is not None:
            return Amount(1.5 * unit, _FINER.get(unit, SECOND)), half
        one = self._words.text(index) in self._language.singular
        return Amount(unit if one else _A_FEW * unit, unit), index + 1

    def unit(self, index: int) -> float | None:
        """The seconds of a unit's name."""
        return self._language.units.get(self._words.text(index))

    def _one(self, index: int) -> tuple[Amount, int] | None:
        if self._words.kind(index) == "amount":
            return _compact(self._words.text(index)), index + 1
        return self._glued(index) or self._fraction(index) or self._plain(index)

    def _glued(self, index: int) -> tuple[Amount, int] | None:
        unit = self._language.units.get(self._words.ending(index))
        if self._words.kind(index) != "number" or unit is None:
            return None
        return Amount(float(self._words.text(index)) * unit, unit), index + 1

    def _fraction(self, index: int) -> tuple[Amount, int] | None:
        """`half an hour`, `a quarter of an hour`, `three quarters of an hour`."""
        count, after = self._spelt(index) or (1.0, index)
        parts = self._language.fractions.get(self._words.text(after))
        if parts is None:
            return None
        after += 1
        after += self._words.text(after) in self._language.of
        after += self._language.numbers.get(self._words.text(after)) == 1
        unit = self.unit(after)
        return None if unit is None else (Amount(count / parts * unit, _FINER.get(unit, SECOND)), after + 1)

    def _plain(self, index: int) -> tuple[Amount, int] | None:
        read = self.number(index)
        if read is None:
            return None
        number, after = read
        joined = self._words.kind(after) == "dash"
        unit = self.unit(after + joined)
        if unit is None:
            return None
        after += joined + 1
        finer = unit if number.is_integer() else _FINER.get(unit, SECOND)
        describes = joined or (number != 1 and self._words.text(after - 1) in self._language.singular)
        half = self._half_behind(after)
        if half:
            return Amount((number + 0.5) * unit, _FINER.get(unit, SECOND)), half
        return Amount(number * unit, finer, describes), after

    def _half_behind(self, index: int) -> int | None:
        """Where `and a half` ends."""
        joined = self._words.text(index) in self._language.conjunction
        article = self._language.numbers.get(self._words.text(index + 1)) == 1
        half = self._language.fractions.get(self._words.text(index + 2)) == 2
        return index + 3 if joined and article and half else None

    def _spelt(self, index: int) -> tuple[float, int] | None:
        """`five`, `twenty-five`, `a hundred`, `a couple of`."""
        numbers = self._language.numbers
        value = numbers.get(self._words.text(index))
        if value is None:
            return None
        following = numbers.get(self._words.text(index + 1))
        if value == 1 and following is not None:
            return float(following), self._past_of(index + 2)
        after = index + 1 + (self._words.kind(index + 1) == "dash")
        ones = numbers.get(self._words.text(after), 0)
        if 20 <= value < 100 and 0 < ones < 10:
            return float(value + ones), after + 1
        return float(value), self._past_of(index + 1)

    def _past_of(self, index: int) -> int:
        """Behind the `of` of `a couple of minutes`."""
        of = self._words.text(index) in self._language.of and self.unit(index + 1) is not None
        return index + of


def _compact(text: str) -> Amount:
    found = _COMPACT.fullmatch(text)
    parts = found.groups() if found else ()
    said = [(float(part), unit) for part, unit in zip(parts, (HOUR, MINUTE, SECOND), strict=False) if part]
    return Amount(sum(number * unit for number, unit in said), said[-1][1] if said else SECOND)
