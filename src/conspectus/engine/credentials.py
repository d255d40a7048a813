"""Credentials of connections: sealed at rest, opened for a sync, and masked in what it reports."""

from collections.abc import Mapping

from conspectus.engine.components import WorkParts
from conspectus.errors import Conflict, ConspectusError
from conspectus.model.connections import Connection

MASK = "[credential]"


class ConnectionCredentials:
    """Seals and opens the credentials of connections."""

    def __init__(self, work: WorkParts) -> None:
        self._job_store = work.job_store
        self._make_sealer = work.make_sealer

    def seal(self, connection: Connection, credentials: Mapping[str, str]) -> str | None:
        """Return sealed credentials; None without any. Raises InvalidInput if the settings have no key."""
        return self._make_sealer().seal(connection.id, credentials) if credentials else None

    async def open(self, connection: Connection) -> Mapping[str, str]:
        """Return the credentials of a connection, sealed anew if a newer key has come.

        Raises Conflict if they cannot be opened, and InvalidInput if the settings have no key.
        """
        sealed = await self._job_store.credentials(connection.id)
        if sealed is None:
            return {}
        sealer = self._make_sealer()
        credentials = sealer.unseal(connection.id, sealed)
        if credentials is None:
            raise Conflict(
                "credentials",
                connection.name,
                "were sealed with another key: set `secret_key` to that key, or give the credentials again",
            )
        if not sealer.is_newest(sealed):
            resealed = sealer.seal(connection.id, credentials)
            await self._job_store.put_credentials(connection.id, resealed, replaced=sealed)
        return credentials


def mask_credentials(text: str, credentials: Mapping[str, str]) -> str:
    """Return a text in which a mask stands for each credential."""
    for secret in sorted(filter(None, credentials.values()), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_error(error: ConspectusError, credentials: Mapping[str, str]) -> None:
    """Mask credentials in the message and the facts of an error."""
    error.args = tuple(
        mask_credentials(part, credentials) if isinstance(part, str) else part for part in error.args
    )
    for name, fact in vars(error).items():
        if isinstance(fact, str):
            setattr(error, name, mask_credentials(fact, credentials))
