"""The installed connectors: those of the product, and those that packages add by entry points."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, cast, get_args, get_origin

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.annotations import NO_EXAMPLE, annotated_hints, base_of, declaration_of
from conspectus.model.connections import Connection
from conspectus.model.connectors import ConnectorKind, ConnectorOption, OptionType
from conspectus.model.records import Json
from conspectus.ports.connectors import ConnectionSite, Connector, ConnectorFactory
from conspectus.ports.web import Fetcher
from conspectus.settings import Settings

GROUP: Final = "conspectus.connectors"
BUILT_IN: Final = tuple(
    EntryPoint(name, f"conspectus.sources.connectors.{factory}", GROUP)
    for name, factory in (
        ("markdown", "markdown_folder:MarkdownFolders"),
        ("git", "git_repository:GitRepositories"),
        ("mediawiki", "mediawiki:MediaWikis"),
    )
)
_OPTION_TYPES: Final[Mapping[type, OptionType]] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
}
_LIST_TYPES: Final[Mapping[type, OptionType]] = {str: "texts", int: "integers"}


@dataclass(frozen=True, slots=True)
class InstalledConnectors:
    """The `Connectors` port. `copies` has a folder for each connection that keeps copies."""

    copies: Path
    settings: Settings

    def list_kinds(self) -> Sequence[ConnectorKind]:
        """Return every installed kind, by name, also those that cannot be loaded."""
        return [_describe(entry_point) for _, entry_point in sorted(_find_entry_points().items())]

    def create(self, connection: Connection, fetcher: Fetcher) -> Connector:
        """Return the connector of a connection. Raises InvalidInput for an unknown kind or option."""
        factory = _load(connection.connector)
        site = ConnectionSite(fetcher, self._folder_of(connection), self.settings)
        return factory.create(_parse_options(factory, connection), site)

    def is_local(self, connection: Connection) -> bool:
        """Return whether it reads the machine that holds the store. Raises InvalidInput as `create` does."""
        factory = _load(connection.connector)
        return factory.is_local(_parse_options(factory, connection))

    async def forget(self, connection: Connection) -> None:
        """Delete the copies of a connection."""
        await asyncio.to_thread(shutil.rmtree, self._folder_of(connection), ignore_errors=True)

    def _folder_of(self, connection: Connection) -> Path:
        return self.copies / connection.id


def _find_entry_points() -> dict[str, EntryPoint]:
    """Return the entry points by name. No package replaces a connector of the product."""
    installed = {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
    return installed | {entry_point.name: entry_point for entry_point in BUILT_IN}


def _load(name: str) -> ConnectorFactory:
    """Return the factory of a kind. Raises InvalidInput if there is none, or it cannot be loaded."""
    built_in = next((entry_point for entry_point in BUILT_IN if entry_point.name == name), None)
    entry_point = built_in or _find_entry_points().get(name)
    if entry_point is None:
        raise InvalidInput(
            "connector", f"{name!r} is not installed; there are {', '.join(sorted(_find_entry_points()))}"
        )
    try:
        return _load_factory(entry_point)
    except (ImportError, AttributeError) as fault:
        raise InvalidInput("connector", f"{name!r} cannot be loaded: {fault}") from fault


def _load_factory(entry_point: EntryPoint) -> ConnectorFactory:
    factory: ConnectorFactory = entry_point.load()()
    return factory


def _describe(entry_point: EntryPoint) -> ConnectorKind:
    try:
        factory = _load_factory(entry_point)
    except (ImportError, AttributeError) as fault:
        return ConnectorKind(entry_point.name, entry_point.name, failure=str(fault))
    hints = annotated_hints(factory.options)
    options = tuple(_describe_option(field, hints[field.name]) for field in fields(factory.options))
    return ConnectorKind(entry_point.name, factory.title, options)


def _describe_option(field: Field[Any], hint: Any) -> ConnectorOption:
    declaration = declaration_of(hint)
    return ConnectorOption(
        field.name,
        _type_of(hint),
        declaration.help,
        required=_is_required(field),
        default=_default_of(field),
        example=None if declaration.example is NO_EXAMPLE else cast(Json, declaration.example),
    )


def _default_of(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _type_of(hint: Any) -> OptionType:
    """Return the type of an option, which may be omitted."""
    base = base_of(hint)
    members = [member for member in get_args(base) if member is not type(None)]
    if type(None) in get_args(base):
        return _type_of(members[0])
    if get_origin(base) is None:
        return _OPTION_TYPES[base]
    return _LIST_TYPES[base_of(members[0])]


def _parse_options(factory: ConnectorFactory, connection: Connection) -> Any:
    """Return the options as the dataclass of a factory, whose fields check themselves."""
    options = connection.options
    known_fields = {field.name: field for field in fields(factory.options)}
    for name in options:
        if name not in known_fields:
            names = ", ".join(known_fields)
            raise InvalidInput(
                "options", f"{name!r} is not an option of {connection.connector}; give {names}"
            )
    for name, field in known_fields.items():
        if name not in options and _is_required(field):
            raise InvalidInput("options", f"{name} is missing")
    return factory.options(**options)
