"""Memories as JSON Lines: one object per line. Errors name the line."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, InvalidInput, TooLarge
from conspectus.memory.scopes import checked
from conspectus.model.graph import Fact
from conspectus.model.memory import CLASSES, Memory, NewMemory, Scope
from conspectus.model.trust import ORIGINS, TRUST
from conspectus.text.clean import clean
from conspectus.text.times import canonical, parse_instant, validity

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

    def required(self, name: str) -> str:
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


FORMAT: Final = 1
_ENDS: Final = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Line separators for some programs, but not in JSON Lines."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another memory of the same user by scope and key."""

    scope: Scope
    key: str


@dataclass(frozen=True, slots=True)
class MemoryVersionLine:
    """A state of a memory from an instant on, with its references to other memories."""

    new: NewMemory
    known_from: datetime
    closed_by: Reference | None = None
    closes: tuple[Reference, ...] = ()
    near: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A memory with its history, oldest state first. `recorded` is the time it was first stored."""

    scope: Scope
    key: str
    recorded: datetime
    states: tuple[MemoryVersionLine, ...]


def line_of(versions: Sequence[Memory], references: Mapping[str, Reference]) -> str:
    """Return the line of a memory, with its newest state last. Other references are omitted."""
    memory, scope = versions[-1], versions[-1].scope
    fields = {
        "format": FORMAT,
        "key": memory.document.key,
        "user": scope.user,
        "agent": scope.agent,
        "conversation": scope.conversation,
        "recorded": canonical(memory.document.recorded),
        **_state(memory, references),
        "versions": [_brief(_state(version, references)) for version in versions[:-1]],
    }
    return _written(fields)


def new_line(
    new: NewMemory, scope: Scope, states: Sequence[tuple[datetime, str]], *, recorded: datetime
) -> str:
    """Return the line of a memory that was kept elsewhere, with its texts there, oldest first.

    Each text has the time from which it held. All states but the last have no metadata and no vector.
    Without `at`, it was said when it was `recorded`.
    """
    since, text = states[-1]
    shared = {"kind": new.kind, "role": new.role, "speaker": new.speaker}
    shared |= {"at": canonical(recorded if new.at is None else parse_instant(new.at))}
    begins, ends = validity(new.valid_from, new.valid_until)
    fields = {
        "format": FORMAT,
        "key": new.key,
        **asdict(scope),
        "recorded": canonical(recorded),
        **shared,
        "text": text,
        "known_from": canonical(since),
        "pinned": new.pinned,
        "fact": None if new.fact is None else asdict(new.fact),
        "valid_from": None if begins is None else canonical(begins),
        "valid_until": None if ends is None else canonical(ends),
        "entities": list(new.entities),
        "metadata": dict(new.metadata),
        "vector": None if new.vector is None else list(new.vector),
        "versions": [
            _brief({**shared, "text": former, "known_from": canonical(since)})
            for since, former in states[:-1]
        ],
    }
    return _written(fields)


def _written(fields: Mapping[str, object]) -> str:
    line = json.dumps(_brief(fields), ensure_ascii=False, allow_nan=False)
    for end, escaped in _ENDS.items():
        line = line.replace(end, escaped)
    return line


def read_line(text: str) -> Line:
    """Parse an exported line. Raises InvalidInput."""
    fields = Fields.of_line(text)
    if fields.number("format") != FORMAT:
        raise InvalidInput("format", f"must be {FORMAT}, as in exported lines")
    scope = checked(Scope(fields.text("user"), fields.text("agent"), fields.text("conversation")))
    key, recorded = fields.required("key"), fields.time("recorded")
    earlier = [_read_state(version, key, scope.user) for version in fields.inners("versions")]
    states = (*earlier, _read_state(fields, key, scope.user))
    if any(one.known_from > following.known_from for one, following in pairwise(states)):
        raise InvalidInput("versions", "are not ordered by `known_from`")
    first = states[0].known_from
    return Line(scope, key, first if recorded is None else min(first, recorded), states)


def _state(memory: Memory, references: Mapping[str, Reference]) -> dict[str, object]:
    document, fact = memory.document, memory.fact
    return {
        "text": memory.text,
        "kind": memory.kind,
        "role": document.role,
        "speaker": document.author,
        "at": None if document.occurred is None else canonical(document.occurred.start),
        "pinned": memory.pinned,
        "fact": None if fact is None else asdict(fact),
        "valid_from": None if memory.valid_from is None else canonical(memory.valid_from),
        "valid_until": None if memory.valid_until is None else canonical(memory.valid_until),
        "entities": list(memory.entities),
        "metadata": dict(memory.metadata),
        "origin": document.origin,
        "trust": document.trust,
        "known_from": canonical(memory.known_from),
        "closed_by": _reference_fields(references.get(memory.closed_by or "")),
        "closes": [
            _reference_fields(references[reference]) for reference in memory.closes if reference in references
        ],
        "near": [
            _reference_fields(references[reference]) for reference in memory.near if reference in references
        ],
    }


def _brief(fields: Mapping[str, object]) -> dict[str, object]:
    """Remove fields without a value. An empty `text` is kept."""
    return {
        key: value for key, value in fields.items() if key == "text" or value not in (None, False, [], {})
    }


def _reference_fields(reference: Reference | None) -> dict[str, object] | None:
    if reference is None:
        return None
    scope = reference.scope
    return _brief({"key": reference.key, "agent": scope.agent, "conversation": scope.conversation})


def _read_state(fields: Fields, key: str, user: str | None) -> MemoryVersionLine:
    kind, known_from = fields.required("kind"), fields.time("known_from")
    if kind not in CLASSES:
        raise InvalidInput("kind", f"must be one of {', '.join(CLASSES)}")
    if known_from is None:
        raise InvalidInput("known_from", "is missing")
    new = NewMemory(
        text=fields.required("text"),
        key=key,
        role=fields.text("role"),
        speaker=fields.text("speaker"),
        at=fields.time("at"),
        kind=kind,
        pinned=fields.flag("pinned"),
        fact=_read_fact(fields.inner("fact")),
        valid_from=fields.time("valid_from"),
        valid_until=fields.time("valid_until"),
        entities=fields.names("entities"),
        metadata=fields.values("metadata"),
        vector=fields.vector("vector"),
        origin=fields.one_of("origin", ORIGINS) or "import",
        trust=fields.one_of("trust", TRUST),
    )
    closed_by = fields.inner("closed_by")
    state = MemoryVersionLine(
        new,
        known_from,
        None if closed_by is None else _reference(closed_by, user),
        tuple(_reference(reference, user) for reference in fields.inners("closes")),
        tuple(_reference(reference, user) for reference in fields.inners("near")),
    )
    fields.end()
    return state


def _read_fact(fields: Fields | None) -> Fact | None:
    if fields is None:
        return None
    subject, predicate, target = (fields.required(field) for field in ("subject", "predicate", "object"))
    fact = Fact(subject, predicate, target, fields.flag("single"))
    fields.end()
    return fact


def _reference(fields: Fields, user: str | None) -> Reference:
    scope = checked(Scope(user, fields.text("agent"), fields.text("conversation")))
    reference = Reference(scope, fields.required("key"))
    fields.end()
    return reference


NAMED: Final = re.compile(r"line (\d+)")


def renumber(fault: InvalidInput, number_of: Callable[[int], int]) -> None:
    """Replace the line number in an error with its number in the whole input."""
    if match := NAMED.fullmatch(fault.field):
        fault.field = f"line {number_of(int(match[1]))}"
        fault.args = (f"{fault.field}: {fault.reason}",)


MARK = "\ufeff"
"""The byte order mark that some programs write at the start of a file."""


class LineReader:
    """Reads lines, optionally into another scope. `check` raises for lines that cannot be stored.

    The user of the given scope replaces the user of every line. Its agent and conversation replace those of
    the line if they are set.
    """

    def __init__(self, into: Scope | None, *, longest: int, check: Callable[[Line], None]) -> None:
        self._into = None if into is None else checked(into)
        self._longest = longest
        self._check = check
        self._meant: dict[tuple[Scope, str], tuple[Scope, int]] = {}

    def batches(self, lines: Iterable[str], *, maximum: int, characters: int) -> Iterator[list[Line]]:
        """Parse lines in batches without duplicate memories. Raises InvalidInput or TooLarge."""
        batch: dict[tuple[Scope, str], Line] = {}
        size = 0
        for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
            line = self._read(number, text)
            if line is None:
                continue
            name = (line.scope, line.key)
            if batch and (name in batch or len(batch) == maximum or size + len(text) > characters):
                yield list(batch.values())
                batch, size = {}, 0
            batch[name] = line
            size += len(text)
        if batch:
            yield list(batch.values())

    def _read(self, number: int, text: str) -> Line | None:
        if isinstance(text, str):
            text = text.removeprefix(MARK).strip() if number == 1 else text.strip()
            if not text:
                return None
            if len(text) > self._longest:
                raise TooLarge(f"line {number}", size=len(text), limit=self._longest, unit="characters")
        try:
            read = read_line(text)
            line = read if self._into is None else moved(read, self._into)
            self._check(line)
        except ConspectusError as fault:
            raise InvalidInput(f"line {number}", str(fault)) from fault
        meant, first = self._meant.setdefault((line.scope, line.key), (read.scope, number))
        if meant != read.scope:
            raise InvalidInput(f"line {number}", f"has the key of line {first}, which has another scope")
        return line


def moved(line: Line, into: Scope) -> Line:
    """Move the line of a memory, with all its references, to another scope."""

    def there(scope: Scope) -> Scope:
        return Scope(into.user, into.agent or scope.agent, into.conversation or scope.conversation)

    def referred(reference: Reference) -> Reference:
        return replace(reference, scope=there(reference.scope))

    def state(version: MemoryVersionLine) -> MemoryVersionLine:
        return replace(
            version,
            closed_by=None if version.closed_by is None else referred(version.closed_by),
            closes=tuple(map(referred, version.closes)),
            near=tuple(map(referred, version.near)),
        )

    return replace(line, scope=there(line.scope), states=tuple(map(state, line.states)))
