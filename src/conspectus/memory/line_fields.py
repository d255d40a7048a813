"""The fields of an object of JSON, each read as what it has to be."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from conspectus.errors import InvalidInput
from conspectus.text.clean import clean
from conspectus.text.times import parse_instant


class Fields:
    """Reads each field once; what is left at the end is not known. All methods raise InvalidInput."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._left = dict(told)

    @classmethod
    def of_line(cls, line: object) -> "Fields":
        """Those of a line of text that is one object."""
        if not isinstance(line, str):
            raise InvalidInput("line", f"is {type(line).__name__}, not text")
        try:
            told = json.loads(line, parse_constant=_refuse)
        except RecursionError as fault:
            raise InvalidInput("line", "is nested too deeply") from fault
        except ValueError as fault:
            raise InvalidInput("line", f"is not JSON: {fault}") from fault
        if not isinstance(told, dict):
            raise InvalidInput("line", "is not an object of JSON")
        return cls(told)

    def number(self, name: str) -> int | None:
        """A whole number."""
        found: int | None = self._take(name, int, "a whole number")
        return found

    def text(self, name: str) -> str | None:
        """A string, as it can be stored."""
        found = self._take(name, str, "text")
        return None if found is None else clean(found)

    def required(self, name: str) -> str:
        """The same, if it is there."""
        found = self.text(name)
        if found is None:
            raise InvalidInput(name, "is missing")
        return found

    def time(self, name: str) -> datetime | None:
        """An instant in ISO 8601."""
        found = self.text(name)
        return None if found is None else parse_instant(found)

    def flag(self, name: str) -> bool:
        """A truth value; false where it is not given."""
        return self._take(name, bool, "true or false") is True

    def names(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        found = self._take(name, list, "a list of texts") or []
        if not all(isinstance(each, str) for each in found):
            raise InvalidInput(name, "must be a list of texts")
        return tuple(clean(each) for each in found)

    def values(self, name: str) -> Mapping[str, object]:
        """An object whose fields are the caller's own."""
        return self._take(name, dict, "an object") or {}

    def inner(self, name: str) -> "Fields | None":
        """An object with fields of ours."""
        found = self._take(name, dict, "an object")
        return None if found is None else Fields(found)

    def inners(self, name: str) -> list["Fields"]:
        """A list of them."""
        found = self._take(name, list, "a list of objects") or []
        if not all(isinstance(each, dict) for each in found):
            raise InvalidInput(name, "must be a list of objects")
        return [Fields(each) for each in found]

    def end(self) -> None:
        """Raise InvalidInput for a field that was not asked for."""
        for name in self._left:
            raise InvalidInput(clean(name)[:100], "is not a field of a memory")

    def _take(self, name: str, kind: type, meant: str) -> Any:
        value = self._left.pop(name, None)
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if value is not None and not right:
            raise InvalidInput(name, f"must be {meant}")
        return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
