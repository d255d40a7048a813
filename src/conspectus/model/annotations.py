"""The vocabulary of annotations: bounds, help and example of a parameter or a field.

`limit: Annotated[int, Range(1, 1_000), "Maximum number of results.", Example(10)]` is the only place that
declares them. The check of the library, the schemas of HTTP and MCP and the reference are read from it.
"""

from collections.abc import Iterator, Sized
from typing import Annotated, Any, Final, NewType, TypeVar, get_args, get_origin, get_type_hints

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput

T = TypeVar("T")
NO_EXAMPLE: Final = object()
"""The example of a declaration that has none."""


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the highest number that is accepted.

    A name as the highest is that of a setting, None is no limit. With `above`, the lowest is excluded.
    """

    lowest: float
    highest: float | str | None = None
    above: bool = False

    @property
    def setting(self) -> str:
        """The name of the setting that is the highest number, or nothing."""
        return self.highest if isinstance(self.highest, str) else ""

    def require(self, name: str, number: float, settings: object = None) -> None:
        """Raise InvalidInput for a number outside."""
        lowest = self.lowest
        highest = getattr(settings, self.highest) if isinstance(self.highest, str) else self.highest
        is_low = number <= lowest if self.above else number < lowest
        if not is_low and (highest is None or number <= highest):
            return
        if highest is None:
            bounds = f"at least {_plain(lowest)}"
        elif self.above:
            bounds = f"above {_plain(lowest)} and at most {_plain(highest)}"
        else:
            bounds = f"from {_plain(lowest)} to {_plain(highest)}"
        raise InvalidInput(name, f"must be {bounds}, not {_plain(number)}")


@dataclass(frozen=True, slots=True)
class Length:
    """The least and the most characters of a text, or elements of a list, that are accepted."""

    shortest: int
    longest: int

    def require(self, name: str, sized: Sized) -> None:
        """Raise InvalidInput for a text or a list of another length."""
        if self.shortest <= len(sized) <= self.longest:
            return
        unit = "characters" if isinstance(sized, str) else "elements"
        bounds = f"from {self.shortest} to {self.longest}" if self.shortest else f"at most {self.longest}"
        raise InvalidInput(name, f"must have {bounds} {unit}")


@dataclass(frozen=True, slots=True)
class LocalPrefix:
    """A beginning of a text that requests may not have, and why."""

    prefix: str
    reason: str


class MayHaveSlash:
    """A marker: a name may contain slashes, and is the rest of a path or a part of it."""


class Secret:
    """A marker: a text is a credential. It is sealed at rest, and no answer, error or log repeats it."""


class NullIsDefault:
    """A marker: requests may have null for the default of a parameter that is never None."""


class Example:
    """A value for the examples of requests, answers and calls."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        """Return what `help` prints in a signature."""
        return f"Example({self.value!r})"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What an annotation says besides the type."""

    help: str = ""
    range: Range | None = None
    length: Length | None = None
    local_prefix: LocalPrefix | None = None
    null_is_default: bool = False
    may_have_slash: bool = False
    is_secret: bool = False
    example: object = NO_EXAMPLE


def annotated_hints(owner: Any) -> dict[str, Any]:
    """Return the annotations of a class or function, complete; JSON, which is recursive, counts as Any."""
    return get_type_hints(owner, localns={"Json": Any}, include_extras=True)


def base_of(annotation: Any) -> Any:
    """Return a type without what is declared about it: that of a new type, or of an annotation."""
    base = annotation.__supertype__ if isinstance(annotation, NewType) else annotation
    return get_args(base)[0] if get_origin(base) is Annotated else base


def declaration_of(annotation: Any) -> Declaration:
    """Return what an annotation declares: what stands outermost counts, then the members of a union."""
    metadata = list(_metadata(annotation))
    example = _first(metadata, Example)
    return Declaration(
        help=_first(metadata, str) or "",
        range=_first(metadata, Range),
        length=_first(metadata, Length),
        local_prefix=_first(metadata, LocalPrefix),
        null_is_default=NullIsDefault in metadata,
        may_have_slash=MayHaveSlash in metadata,
        is_secret=Secret in metadata,
        example=NO_EXAMPLE if example is None else example.value,
    )


def _metadata(annotation: Any) -> Iterator[object]:
    if isinstance(annotation, NewType):
        yield from _metadata(annotation.__supertype__)
    elif get_origin(annotation) is Annotated:
        hint, *metadata = get_args(annotation)
        yield from reversed(metadata)
        yield from _metadata(hint)
    elif type(None) in get_args(annotation):
        for member in get_args(annotation):
            yield from _metadata(member)


def _first(metadata: list[object], kind: type[T]) -> T | None:
    return next((part for part in metadata if isinstance(part, kind)), None)


def _plain(number: float) -> float:
    """Return a number without a fraction as an integer, for messages."""
    return int(number) if float(number).is_integer() else number
