"""The port to stores of other products, and what their records become here."""

from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import datetime
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.records import NewDocument

NAMED: Final = 5
"""Number of records that are named for each reason."""


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A record of another product's store, with its key there.

    `new` is what it becomes: a memory of the scope `place`, or a document of the source `place`. `created`
    and `updated` are its times there (None: not known), `earlier` its former texts, oldest first, each with
    the time from which it held. `model` is the embedding model of the vector in `new`, if the store names it.
    """

    place: Scope | str
    new: NewMemory | NewDocument
    created: datetime | None = None
    updated: datetime | None = None
    earlier: tuple[tuple[datetime, str], ...] = ()
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Records that are not imported: their number, and the first of them."""

    count: int = 0
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class LeftOut:
    """What of a store has no place here: records by reason, and other fields with how often they were met.

    `remarks` say how often something was kept in another form.
    """

    records: dict[str, Skipped] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str, name: str, count: int = 1) -> None:
        """Count records that are not imported. An empty name names none."""
        before = self.records.get(reason, Skipped())
        names = before.names if len(before.names) == NAMED or not name else (*before.names, name)
        self.records[reason] = Skipped(before.count + count, names)

    def field(self, name: str, count: int = 1) -> None:
        """Count values of a field that has no place."""
        self.fields[name] = self.fields.get(name, 0) + count

    def remark(self, what: str) -> None:
        """Count a record that is kept in another form."""
        self.remarks[what] = self.remarks.get(what, 0) + 1


@dataclass(frozen=True, slots=True)
class ForeignPlace:
    """Where a store is, and which part of it is read.

    `place` is a path or a URL. `names` are those of its collections (empty: all), `text_fields` the fields
    that may hold the text, the preferred one first (empty: those that are usual), `namespace` says where in a
    namespace the scope is, and `history` is the path of a database with former texts.
    """

    place: str
    names: tuple[str, ...] = ()
    text_fields: tuple[str, ...] = ()
    namespace: str | None = None
    history: str | None = None


ForeignReader: TypeAlias = Callable[[LeftOut], Iterator[ForeignRecord]]
"""Reads the records of a store in a stable order, and counts what it leaves out.

Raises UnreadableFile, TooLarge, InvalidInput, or MissingExtra for a library that is not installed.
"""
