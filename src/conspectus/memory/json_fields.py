"""Reads the fields of a JSON object, and rejects unknown ones."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from conspectus.errors import InvalidInput
from conspectus.text.clean import clean
from conspectus.text.times import parse_instant

Word = TypeVar("Word", bound=str)


class Fields:
    """Reads the fields of an object and rejects unknown fields. All methods raise InvalidInput."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._left = dict(fields)

    @classmethod
    def of_line(cls, line: object) -> "Fields":
        """Parse a line that holds a JSON object."""
        if not isinstance(line, str):
            raise InvalidInput("line", f"is {type(line).__name__}, not text")
        try:
            fields = json.loads(line, parse_constant=_refuse)
        except RecursionError as fault:
            raise InvalidInput("line", "is nested too deeply") from fault
        except ValueError as fault:
            raise InvalidInput("line", f"is not JSON: {fault}") from fault
        if not isinstance(fields, dict):
            raise InvalidInput("line", "is not a JSON object")
        return cls(fields)

    def number(self, name: str) -> int | None:
        """Read an integer."""
        number: int | None = self._take(name, int, "a whole number")
        return number

    def text(self, name: str) -> str | None:
        """Read a string, without characters that cannot be stored."""
        text = self._take(name, str, "text")
        return None if text is None else clean(text)

    def read_required(self, name: str) -> str:
        """Read a required string."""
        text = self.text(name)
        if text is None:
            raise InvalidInput(name, "is missing")
        return text

    def time(self, name: str) -> datetime | None:
        """Read an instant in ISO 8601."""
        text = self.text(name)
        return None if text is None else parse_instant(text)

    def flag(self, name: str) -> bool:
        """Read a boolean. Defaults to false."""
        return self._take(name, bool, "true or false") is True

    def names(self, name: str) -> tuple[str, ...]:
        """Read a list of strings."""
        texts = self._take(name, list, "a list of texts") or []
        if not all(isinstance(text, str) for text in texts):
            raise InvalidInput(name, "must be a list of strings")
        return tuple(clean(text) for text in texts)

    def vector(self, name: str) -> tuple[float, ...] | None:
        """Read a list of numbers."""
        numbers = self._take(name, list, "a list of numbers")
        if not all(
            isinstance(number, int | float) and not isinstance(number, bool) for number in numbers or ()
        ):
            raise InvalidInput(name, "must be a list of numbers")
        return None if numbers is None else tuple(numbers)

    def values(self, name: str) -> Mapping[str, object]:
        """Read an object with arbitrary fields."""
        return self._take(name, dict, "an object") or {}

    def inner(self, name: str) -> "Fields | None":
        """Read an object with fixed fields."""
        members = self._take(name, dict, "an object")
        return None if members is None else Fields(members)

    def inners(self, name: str) -> list["Fields"]:
        """Read a list of objects with fixed fields."""
        objects = self._take(name, list, "a list of objects") or []
        if not all(isinstance(member, dict) for member in objects):
            raise InvalidInput(name, "must be a list of objects")
        return [Fields(member) for member in objects]

    def one_of(self, name: str, words: tuple[Word, ...]) -> Word | None:
        """Read one of these words."""
        word = self.text(name)
        if word is not None and word not in words:
            raise InvalidInput(name, f"must be one of {', '.join(words)}")
        return next((allowed for allowed in words if allowed == word), None)

    def end(self) -> None:
        """Raise InvalidInput if unread fields are left."""
        for name in self._left:
            raise InvalidInput(clean(name)[:100], "is not a field of a memory")

    def _take(self, name: str, kind: type, meant: str) -> Any:
        value = self._left.pop(name, None)
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if value is not None and not right:
            raise InvalidInput(name, f"must be {meant}")
        return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
