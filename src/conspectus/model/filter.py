"""Filters are data, with a form in JSON. `matches` is their meaning; every adapter has to agree with it.

A field is a name of `FIELDS`, or a tuple of strings: the path of a value inside the metadata. A value
that is null counts as missing. A list matches when any of its elements does. Numbers compare with
numbers, strings with strings, truth values with truth values, instants with instants or with strings
that are ISO 8601 instants with a zone; anything else does not match. Strings that differ only in whether
their accents are composed are equal. `Not` is plain negation, so it holds for rows where the field is
missing.

A key is a path with slashes: `file` is its last part, and `folder` each folder that it is in, so
`Eq("folder", "docs")` matches `docs/menu.md` and `docs/old/menu.md`.

A condition that no row can satisfy, whatever it holds, raises InvalidInput: a name where a number belongs, an
instant without a zone, or a path that starts with the word `metadata`.

{"field": "kind", "eq": "page"}                         {"field": "metadata.lang", "in": ["de", "fr"]}
{"field": "sequence", "from": 10, "to": 20}             {"field": ["metadata", "a.b"], "exists": true}
{"field": "title", "contains": "backup"}
{"overlaps": {"from": "2024-05-01T00:00:00+00:00"}}     {"not": F}   {"and": [F, F]}   {"or": [F, F]}

`from` is included, `to` is not, and either may be missing. Instants are written {"time": "ISO 8601"}.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, assert_never, get_args

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.checks import Checked, How, format_value
from conspectus.model.filter_operands import (
    MetadataPath,
    compose_accents,
    fold_text,
    folders_of,
    require_common_type,
    require_comparable,
    require_containing_field,
    require_field,
    require_path,
)
from conspectus.model.ids import is_stable_id
from conspectus.model.records import Document, Period
from conspectus.model.trust import TRUST, Trust

Scalar: TypeAlias = str | int | float | bool | datetime
FieldName = Literal[
    "source", "document", "kind", "author", "role", "thread", "parent", "trust",
    "sequence", "position", "occurred", "recorded", "title", "key", "file", "folder",
]  # fmt: skip
FIELDS: frozenset[str] = frozenset(get_args(FieldName))
Field: TypeAlias = FieldName | MetadataPath | tuple[str, ...]


class Condition(Checked):
    """The base of all filters, which may compare with any number."""

    __slots__ = ()
    how: ClassVar[How] = How(any_number=True)


class Comparison(Condition):
    """The base of filters that compare a field with values. Raises InvalidInput if nothing can match."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the types of the fields, and whether anything can match."""
        leaf: Any = self
        require_field(leaf.field, FIELDS)
        super().__post_init__()
        require_path(leaf.field)
        for operand in operands_of(leaf):
            require_comparable(leaf.field, operand)
        if isinstance(leaf, Between):
            require_common_type(leaf.low, leaf.high)


@dataclass(frozen=True, slots=True)
class Eq(Comparison):
    """The value equals `value`."""

    field: Field
    value: Scalar


@dataclass(frozen=True, slots=True)
class In(Comparison):
    """The value equals one of `values`; with none, nothing matches.

    Many values have a `digest`, which stands for them where the condition is shown; see `among_sources`.
    """

    field: Field
    values: tuple[Scalar, ...]
    digest: str = ""

    def __repr__(self) -> str:
        """Return the digest in place of many values."""
        return f"In(field={self.field!r}, values={self.digest or self.values!r})"


@dataclass(frozen=True, slots=True)
class Between(Comparison):
    """low ≤ value < high, where None is open; numbers, strings or instants. Not for `occurred`."""

    field: Field
    low: Scalar | None = None
    high: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """`text` is a part of the value, whatever the case: of `title`, `key`, `file`, `folder` or metadata."""

    field: Field
    text: str

    def __post_init__(self) -> None:
        """Check the field, and that the text is not empty."""
        require_field(self.field, FIELDS)
        Condition.__post_init__(self)
        require_path(self.field)
        require_containing_field(self.field, self.text)


@dataclass(frozen=True, slots=True)
class Overlaps(Condition):
    """The event time `occurred` shares an instant with [start, end), where None is open."""

    zoned: ClassVar[Sequence[str]] = ("start", "end")
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Exists(Condition):
    """The field has a value other than null."""

    field: Field

    def __post_init__(self) -> None:
        """Check the type of the field, and that a path does not start with `metadata`."""
        require_field(self.field, FIELDS)
        Condition.__post_init__(self)
        require_path(self.field)


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The inner filter does not match."""

    inner: "Filter"


@dataclass(frozen=True, slots=True)
class And(Condition):
    """All match; with none, everything matches."""

    inner: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """At least one matches; with none, nothing matches."""

    inner: tuple["Filter", ...] = ()


Leaf: TypeAlias = Eq | In | Between | Contains | Overlaps | Exists
Filter: TypeAlias = Leaf | Not | And | Or
DocumentFilter = Annotated[
    Filter,
    "Condition on fields and metadata: eq, in, from/to, contains, exists, overlaps, not, and, or.",
]
Row: TypeAlias = Mapping[str, object]

EVERYTHING = And()
_ID_FIELDS: Mapping[object, str] = {
    "source": "the list of sources has the ids",
    "document": "filter by key, title or file instead",
    "parent": "a document has its id, beside its key",
}
"""The fields that hold ids, and what to do with a name."""


def matches(condition: Filter, row: Row) -> bool:
    """Whether a row (field name → value, with `metadata` a nested mapping) satisfies the filter."""
    match condition:
        case Not():
            return not matches(condition.inner, row)
        case And():
            return all(matches(part, row) for part in condition.inner)
        case Or():
            return any(matches(part, row) for part in condition.inner)
        case Overlaps():
            return holds(condition, row.get("occurred"))
        case Eq() | In() | Between() | Contains() | Exists():
            return holds(condition, value_at(row, condition.field))
        case _:
            assert_never(condition)


def value_at(row: Row, field: Field) -> object:
    """The value of a named field or metadata path; None where it is missing or null."""
    if isinstance(field, str):
        return row.get(field)
    value: object = row.get("metadata")
    for step in field:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def holds(leaf: Leaf, value: object) -> bool:
    """Return whether one value satisfies a leaf; adapters may evaluate it once per distinct value."""
    if value is None:
        return False
    match leaf:
        case Exists():
            return True
        case Overlaps():
            return isinstance(value, Period) and value.overlaps(leaf.start, leaf.end)
        case _ if isinstance(value, list | tuple):
            return any(holds(leaf, element) for element in value)
        case Contains():
            return isinstance(value, str) and fold_text(leaf.text) in fold_text(value)
        case Eq() | In():
            return _equal(value, leaf.value) if isinstance(leaf, Eq) else _is_among(value, leaf)
        case Between():
            above = leaf.low is None or _order(value, leaf.low) in {0, 1}
            return above and (leaf.high is None or _order(value, leaf.high) == -1)
        case _:
            assert_never(leaf)


def among_sources(sources: Iterable[str]) -> In:
    """Return the condition for any number of sources, which is shown by the digest of their ids."""
    ids = tuple(sorted(sources))
    digest = hashlib.sha256(
        "".join(f"{len(id)} {id}" for id in ids).encode(errors="surrogatepass")
    ).hexdigest()
    return In("source", ids, digest)


def _is_among(value: object, leaf: In) -> bool:
    if leaf.digest:
        position = bisect_left(leaf.values, value) if isinstance(value, str) else len(leaf.values)
        return leaf.values[position : position + 1] == (value,)
    return any(_equal(value, expected) for expected in leaf.values)


def document_row(document: Document, position: int | None = None) -> Row:
    """Return a document, or its chunk at `position`, as a row for `matches`."""
    return {
        "source": document.source,
        "document": document.id,
        "kind": document.kind,
        "author": document.author,
        "role": document.role,
        "thread": document.thread,
        "parent": document.parent,
        "trust": document.trust,
        "sequence": document.sequence,
        "position": position,
        "occurred": document.occurred,
        "recorded": document.recorded,
        "title": document.title or None,
        "key": document.key,
        "file": document.key.rpartition("/")[2] or None,
        "folder": folders_of(document.key),
        "metadata": document.metadata,
    }


def require_ids(condition: Filter) -> None:
    """Refuse a name where only an id can match. Raises InvalidInput."""
    for leaf in leaves(condition):
        if not isinstance(leaf, Overlaps | Exists | Contains) and leaf.field in _ID_FIELDS:
            for operand in operands_of(leaf):
                _require_id(leaf.field, operand)


def _require_id(field: Field, operand: Scalar) -> None:
    if not is_stable_id(str(operand)):
        reason = f"{field} is an id, and {format_value(operand)} is none; {_ID_FIELDS[field]}"
        raise InvalidInput("filter", reason)


def in_documents(ids: Iterable[str]) -> Filter:
    """Return the filter for the documents with these ids; what is no id names none."""
    return In("document", tuple(name for name in ids if is_stable_id(name)))


def require_document_fields(condition: Filter) -> None:
    """Refuse a filter on the position of a chunk, where documents are selected. Raises InvalidInput."""
    require_ids(condition)
    if any(not isinstance(leaf, Overlaps) and leaf.field == "position" for leaf in leaves(condition)):
        raise InvalidInput("filter", "position is that of a chunk; a document has none. Leave it out")


def operands_of(leaf: Eq | In | Between) -> Sequence[Scalar]:
    """Return the values that a leaf compares its field with."""
    match leaf:
        case Eq():
            return (leaf.value,)
        case In():
            return leaf.values
        case Between():
            return [bound for bound in (leaf.low, leaf.high) if bound is not None]
        case _:
            assert_never(leaf)


def with_min_trust(condition: Filter, level: Trust | None) -> Filter:
    """Restrict a filter to rows of at least a level (None: any)."""
    if level in {None, TRUST[-2], TRUST[-1]}:
        return condition
    return And((In("trust", TRUST[: TRUST.index(level) + 1]), condition))


def names_texts(condition: Filter) -> bool:
    """Return whether a filter names the documents or threads that match, such as `Eq("thread", "17")`."""
    match condition:
        case Eq() | In():
            return condition.field in {"document", "thread"}
        case And():
            return any(names_texts(part) for part in condition.inner)
        case Or():
            return bool(condition.inner) and all(names_texts(part) for part in condition.inner)
        case _:
            return False


def leaves(condition: Filter) -> Iterator[Leaf]:
    """Every leaf of a filter, in order."""
    match condition:
        case Not():
            yield from leaves(condition.inner)
        case And() | Or():
            for part in condition.inner:
                yield from leaves(part)
        case _:
            yield condition


def instant(value: object) -> datetime | None:
    """The UTC instant of an aware datetime or of an ISO 8601 string with a zone; None for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


def _equal(value: object, expected: Scalar) -> bool:
    return _order(value, expected) == 0


def _order(value: object, bound: Scalar) -> int | None:
    """Return -1, 0 or 1 for a value below, at or above the bound; None if they are not comparable."""
    if isinstance(bound, datetime):
        moment, limit = instant(value), instant(bound)
        if moment is None or limit is None:
            return None
        return (moment > limit) - (moment < limit)
    if isinstance(bound, str):
        if isinstance(value, str):
            text, limit_text = compose_accents(value), compose_accents(bound)
            return (text > limit_text) - (text < limit_text)
        return None
    if isinstance(bound, bool) is not isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value == value and bound == bound:
        return (value > bound) - (value < bound)
    return None
