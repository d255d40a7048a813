"""The installed connectors: those of the product, and those that packages add by entry points."""

import asyncio
import importlib
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
from conspectus.sources.web.allowed_hosts import AllowedHosts

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

    def create(self, connection: Connection, fetcher: Fetcher, credentials: Mapping[str, str]) -> Connector:
        """Return the connector of a connection. Raises InvalidInput for an unknown kind or option."""
        factory = _load(connection.connector)
        # The readers of files load much that an engine without a sync does not need.
        remote_files = importlib.import_module("conspectus.sources.connectors.remote_files")
        files = remote_files.RemoteFileReader(self.settings)
        hosts = AllowedHosts.from_settings(self.settings)
        site = ConnectionSite(fetcher, self._folder_of(connection), self.settings, files, hosts)
        return factory.create(_parse_options(factory, connection, credentials), site)

    def is_local(self, connection: Connection, credentials: Mapping[str, str]) -> bool:
        """Return whether it reads the machine that holds the store. Raises InvalidInput as `create` does."""
        factory = _load(connection.connector)
        return factory.is_local(_parse_options(factory, connection, credentials))

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
    """Return the factory of an entry point. Raises AttributeError for options that would show a secret."""
    factory: ConnectorFactory = entry_point.load()()
    hints = annotated_hints(factory.options)
    for field in fields(factory.options):
        if declaration_of(hints[field.name]).is_secret and (
            field.repr or _type_of(hints[field.name]) != "text"
        ):
            raise AttributeError(f"the secret option {field.name} must be a text with field(repr=False)")
    return factory


def _list_secrets(factory: ConnectorFactory) -> list[str]:
    """Return the names of the options that are credentials."""
    hints = annotated_hints(factory.options)
    return [field.name for field in fields(factory.options) if declaration_of(hints[field.name]).is_secret]


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
        default=None if declaration.is_secret else _default_of(field),
        example=None if declaration.example is NO_EXAMPLE else cast(Json, declaration.example),
        secret=declaration.is_secret,
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


def _parse_options(factory: ConnectorFactory, connection: Connection, credentials: Mapping[str, str]) -> Any:
    """Return options and credentials as the dataclass of a factory, whose fields check themselves."""
    secrets = _list_secrets(factory)
    options = [field.name for field in fields(factory.options) if field.name not in secrets]
    for name in connection.options:
        if name not in options:
            advice = _advise(options)
            raise InvalidInput("options", f"{name!r} is not an option of {connection.connector}; {advice}")
    for name in credentials:
        if name not in secrets:  # The name is not repeated: somebody may have typed the secret there.
            advice = _advise(secrets)
            raise InvalidInput(
                "credentials", f"a name is not a credential of {connection.connector}; {advice}"
            )
    arguments = {**connection.options, **credentials}
    for field in fields(factory.options):
        if field.name not in arguments and _is_required(field):
            group = "credentials" if field.name in secrets else "options"
            raise InvalidInput(group, f"{field.name} is missing")
    return factory.options(**arguments)


def _advise(names: Sequence[str]) -> str:
    return f"give {', '.join(names)}" if names else "it has none"
