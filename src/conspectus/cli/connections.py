"""connections: sync a collection with Git, MediaWiki or a folder."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from getpass import getpass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, cast

import typer
from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument
from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Waiting, jobs_table, show_job
from conspectus.cli.options import Confirmation
from conspectus.cli.output import moment, rows_table
from conspectus.cli.session import Opening, Session
from conspectus.cli.text_input import read_text
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.connectors import ConnectorKind
from conspectus.model.files import expand_home
from conspectus.model.jobs import Job
from conspectus.model.parameters import ConnectionName
from conspectus.model.viewers import RemotePerson

ConnectionArgument = Annotated[str, argument(ConnectionName, metavar="NAME")]
BOOLEANS: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})


def watch(name: ConnectionArgument, session: Session) -> None:
    """Sync a connection now and after every change of its folder."""
    session.require_here()

    def on_job(job: Job) -> None:
        session.show(job, jobs_table([job]))

    session.engine.connections.watch(name, collection=session.collection, on_job=on_job)


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """Where the credentials of a connection come from."""

    credentials: Annotated[
        Path | None,
        typer.Option(
            help="File with one `name: value` per line, or a JSON object; - is stdin (default: ask)."
        ),
    ] = None


def _prepare_connection(session: Session, arguments: Arguments) -> None:
    arguments["options"] = _options(arguments["options"])
    arguments["credentials"] = _credentials(session, arguments["connector"], arguments["extra"].credentials)


def _prepare_credentials(session: Session, arguments: Arguments) -> None:
    connections = session.engine.connections.list(collection=session.collection)
    connectors = {connection.name: connection.connector for connection in connections}
    connector = connectors.get(arguments["name"], "")
    arguments["credentials"] = _credentials(session, connector, arguments["extra"].credentials)


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


def _people_table(people: Iterable[RemotePerson]) -> RenderableType:
    return rows_table(("person", "user"), ((person.name, person.user) for person in people))


def _kinds_table(kinds: Iterable[ConnectorKind]) -> RenderableType:
    rows = (
        (
            kind.name, kind.title, option.name if option else None,
            ("yes" if option.required else "no") if option else None,
            ("yes" if option.secret else "no") if option else None,
            option.help if option else kind.failure,
        )
        for kind in kinds
        for option in kind.options or [None]
    )  # fmt: skip
    return rows_table(("connector", "title", "option", "required", "secret", "help"), rows)


def _credentials(session: Session, connector: str, file: Path | None) -> dict[str, str]:
    """Return the credentials in a file, or ask a terminal for those of a connector without echo."""
    if file is not None:
        return _parse_credentials(read_text(file, "credentials"))
    if not sys.stdin.isatty():
        return {}
    kinds = {kind.name: kind for kind in session.engine.connections.list_connectors()}
    secrets = [option for option in kinds[connector].options if option.secret] if connector in kinds else []
    answers = {option.name: getpass(f"{option.name} ({option.help.rstrip('.')}): ") for option in secrets}
    return {name: answer for name, answer in answers.items() if answer}


def _parse_credentials(text: str) -> dict[str, str]:
    """Parse lines `name: value` or a JSON object. Raises InvalidInput, which repeats nothing."""
    if text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            raise InvalidInput("credentials", "is not a JSON object") from None
        return cast(dict[str, str], parsed)
    credentials: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, secret = line.partition(":")
        if line.strip() and not (colon and name.strip()):
            raise InvalidInput("credentials", f"line {number} is not `name: value`")
        if line.strip():
            credentials[name.strip()] = secret.strip()
    return credentials


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
        only="options", defaults={"options": ()}, extra=CredentialsFile, prepare=_prepare_connection,
        opening=Opening(new=True),
    ),
    "credentials": Command(
        "jobs:ConnectionService.set_credentials", "Replace the credentials of a connection.",
        "stored the credentials of {name}", arguments={"name": "NAME"}, only="", extra=CredentialsFile,
        prepare=_prepare_credentials,
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
    "people": Command(
        "jobs:ConnectionService.list_people", "List the people at the remote with the users that they are.",
        _people_table, limit=1_000, nothing="no people",
    ),
    "map": Command(
        "jobs:ConnectionService.map_person", "Let a user read what a person at the remote may read.",
        "{result.name} is now {result.user}", arguments={"name": "NAME", "person": "PERSON"},
    ),
    "delete": Command(
        "jobs:ConnectionService.delete", "Delete a connection.",
        "deleted the connection {name}; documents deleted: {result.documents}",
        options={"delete": "--documents"}, extra=Confirmation, prepare=_confirm_connection,
    ),
}  # fmt: skip
