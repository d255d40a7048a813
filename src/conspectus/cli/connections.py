"""connections: sync a collection with Git, MediaWiki or a folder."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final

from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument
from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Waiting, jobs_table, show_job
from conspectus.cli.options import Confirmation
from conspectus.cli.output import moment, rows_table
from conspectus.cli.session import Opening, Session
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.connectors import ConnectorKind
from conspectus.model.files import expand_home
from conspectus.model.jobs import Job
from conspectus.model.parameters import ConnectionName

ConnectionArgument = Annotated[str, argument(ConnectionName, metavar="NAME")]
BOOLEANS: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})


def watch(name: ConnectionArgument, session: Session) -> None:
    """Sync a connection now and after every change of its folder."""
    session.require_here()

    def on_job(job: Job) -> None:
        session.show(job, jobs_table([job]))

    session.engine.connections.watch(name, collection=session.collection, on_job=on_job)


def _parse_options(_: Session, arguments: Arguments) -> None:
    arguments["options"] = _options(arguments["options"])


def _confirm_connection(_: Session, arguments: Arguments) -> None:
    confirm("Delete all its documents?", yes=arguments["extra"].yes or not arguments["delete"])


def _connections_table(connections: Iterable[Connection]) -> RenderableType:
    rows = (
        (
            connection.name, connection.connector, connection.state, connection.access,
            moment(connection.last_run), json.dumps(dict(connection.options), ensure_ascii=False),
            connection.error,
        )
        for connection in connections
    )  # fmt: skip
    return rows_table(("name", "connector", "state", "access", "last run", "options", "error"), rows)


def _kinds_table(kinds: Iterable[ConnectorKind]) -> RenderableType:
    rows = (
        (
            kind.name, kind.title, option.name if option else None,
            ("yes" if option.required else "no") if option else None,
            option.help if option else kind.failure,
        )
        for kind in kinds
        for option in kind.options or [None]
    )  # fmt: skip
    return rows_table(("connector", "title", "option", "required", "help"), rows)


def _options(values: Sequence[str]) -> dict[str, Any]:
    """Parse KEY=VALUE pairs, with JSON lists, true and false. `path` is made absolute."""
    options: dict[str, Any] = {}
    for pair in values:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidInput("option", f"{pair!r} is not KEY=VALUE")
        options[name] = _list(value) if value.startswith("[") else BOOLEANS.get(value, value)
    if "path" in options:
        options["path"] = str(expand_home(options["path"]).absolute())
    return options


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput("option", f"{text!r} is not a JSON list") from None


CONNECTIONS_COMMANDS: Final = {
    "add": Command(
        "jobs:ConnectionService.create", "Connect the collection to Git, MediaWiki or a folder.",
        lambda connection: _connections_table([connection]), options={"options": "--option"},
        defaults={"options": ()}, prepare=_parse_options, opening=Opening(new=True),
    ),
    "kinds": Command(
        "jobs:ConnectionService.list_connectors", "List the installed connectors with their options.",
        _kinds_table, limit=100,
    ),
    "list": Command(
        "jobs:ConnectionService.list", "List the connections of the collection with their last runs.",
        _connections_table, limit=100, nothing="no connections",
    ),
    "sync": Command("jobs:ConnectionService.sync", "Sync a connection now.", extra=Waiting, show=show_job),
    "watch": watch,
    "delete": Command(
        "jobs:ConnectionService.delete", "Delete a connection.",
        "deleted the connection {name}; documents deleted: {result.documents}",
        options={"delete": "--documents"}, extra=Confirmation, prepare=_confirm_connection,
    ),
}  # fmt: skip
