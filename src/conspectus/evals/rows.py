"""Lines of evaluation files, read field by field with errors that say where."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from conspectus.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a JSONL file."""

    place: str
    values: Mapping[str, object]

    def id(self, name: str) -> str:
        """A name or number, as a string."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidInput(self.place, f"{name!r} must be a string or a whole number")
        return str(value)

    def number(self, name: str) -> int:
        """A whole number."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(self.place, f"{name!r} must be a whole number")
        return value

    def real(self, name: str) -> float:
        """A finite number."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InvalidInput(self.place, f"{name!r} must be a number")
        return float(value)

    def text(self, name: str) -> str:
        """A string."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise InvalidInput(self.place, f"{name!r} must be a string")
        return value

    def optional(self, name: str) -> str | None:
        """A name or number, None where it is missing or null."""
        return self.id(name) if self.values.get(name) is not None else None

    def mapping(self, name: str) -> Mapping[str, object]:
        """An object, an empty one where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InvalidInput(self.place, f"{name!r} must be an object")
        return value

    def items(self, name: str) -> list[object]:
        """A list, an empty one where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidInput(self.place, f"{name!r} must be a list")
        return value

    def ids(self, name: str) -> frozenset[str]:
        """The names or numbers of a list, as strings."""
        return frozenset(Row(self.place, {name: value}).id(name) for value in self.items(name))

    def scalars(self, *, without: frozenset[str]) -> dict[str, object]:
        """All other fields that hold strings, numbers or truth values."""
        return {
            name: value
            for name, value in self.values.items()
            if name not in without and isinstance(value, str | int | float)
        }


def rows(path: Path) -> Iterator[Row]:
    """The rows of a JSONL file. Raises InvalidInput naming file and line."""
    for number, line in lines(path):
        place = f"{path.name} line {number}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(place, f"is not JSON ({error})") from error
        if not isinstance(values, dict):
            raise InvalidInput(place, "is not a JSON object")
        yield Row(place, values)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, blank ones left out; only a line feed ends a line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(path.name, f"cannot be read in {path.parent}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(path.name, f"is not UTF-8 at byte {error.start}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")
