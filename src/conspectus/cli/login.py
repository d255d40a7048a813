"""login and logout: come in at a server with its identity provider, without an API key."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli.output import note
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, NotFound, ServerUnavailable
from conspectus.model.records import Json
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.client.stored_logins import Login, StoredLogins


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """What a login asks the identity provider for."""

    scope: Annotated[
        list[str], typer.Option("--scope", help="Scope to ask the identity provider for; repeatable.")
    ]
    client_id: Annotated[
        str, typer.Option(help="Id of the command line at the identity provider, if the server names none.")
    ] = ""


def login(session: Session, *, options: LoginOptions) -> None:
    """Log in at a server with its identity provider."""
    server = _server_of(session)
    completed = asyncio.run(_log_in(server, options, session.settings))
    logins = _logins_of(session)
    with logins.lock():
        logins.put(completed)
    user = session.engine.people.whoami().name
    facts: dict[str, Json] = {"server": server, "issuer": completed.issuer, "user": user}
    session.show(facts, f"logged in at {server} as {user}")


def logout(session: Session) -> None:
    """End the login at a server, and revoke its tokens."""
    server, logins = _server_of(session), _logins_of(session)
    with logins.lock():
        stored = logins.find(server)
        if stored is None:
            raise NotFound("login", server)
        logins.remove(server)
    is_revoked = False
    with suppress(ServerUnavailable):
        is_revoked = asyncio.run(_revoke(stored, session.settings))
    if not is_revoked:
        end = datetime.fromtimestamp(stored.expires, UTC)
        session.note(f"the identity provider did not revoke the tokens; the last ends at {end:%H:%M} UTC")
    facts: dict[str, Json] = {"server": server, "revoked": is_revoked}
    session.show(facts, f"logged out at {server}")


def _server_of(session: Session) -> str:
    """Return the address of the server. Raises InvalidInput without one."""
    from conspectus.client.connection import check_address

    if not session.url:
        raise InvalidInput("url", "is required: give --url, or set CONSPECTUS_URL")
    return check_address(session.url)


def _logins_of(session: Session) -> "StoredLogins":
    from conspectus.client.connection import stored_logins

    return stored_logins(session.settings)


async def _log_in(server: str, options: LoginOptions, settings: Settings) -> "Login":
    """Return a completed login, after a person has entered the code that is printed."""
    from conspectus.client.connection import issuer_client
    from conspectus.client.device_login import DeviceLogin

    async with issuer_client(settings) as http:
        device_login = DeviceLogin(http)
        code = await device_login.begin(server, options.client_id, options.scope)
        note(f"open {code.address} in a browser, and enter the code {code.user_code}")
        if code.complete_address is not None:
            note(f"or open {code.complete_address}, and compare the code")
        return await device_login.wait(code)


async def _revoke(stored: "Login", settings: Settings) -> bool:
    from conspectus.client.connection import issuer_client
    from conspectus.client.device_login import DeviceLogin

    async with issuer_client(settings) as http:
        return await DeviceLogin(http).revoke(stored)
