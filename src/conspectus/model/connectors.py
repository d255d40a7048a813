"""Kinds of connectors, with the options that they take."""

from typing import Annotated, Literal

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.records import Json

OptionType = Literal["text", "boolean", "integer", "number", "texts", "integers"]


@dataclass(frozen=True, slots=True)
class ConnectorOption:
    """An option of a connector: what a form needs to ask for it. A `secret` one is given in `credentials`."""

    name: Annotated[str, Example("address")]
    type: OptionType
    help: Annotated[str, Example("Address of the repository.")]
    required: bool
    default: Json = None
    example: Annotated[Json, Example("https://git.example.org/handbook.git")] = None
    secret: bool = False


@dataclass(frozen=True, slots=True)
class ConnectorKind:
    """A connector that is installed. With `failure` it cannot be used, and the text says why."""

    name: Annotated[str, Example("git")]
    title: Annotated[str, Example("Git repository")]
    options: tuple[ConnectorOption, ...] = ()
    failure: str | None = None
