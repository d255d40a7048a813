"""Errors of PostgreSQL and its driver, converted to ours."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from conspectus.errors import (
    Conflict,
    ConspectusError,
    InvalidInput,
    StorageBusy,
    StorageError,
    WriteOutcomeUnknown,
)

_UNIQUE_VIOLATION: Final = "23505"
_READ_ONLY: Final = "25006"
_NO_CONNECTION: Final = "53300"
_UNSUPPORTED: Final = "0A000"
"""The SQLSTATE of a standby that rejects a write transaction."""
_ROLLED_BACK: Final = frozenset({"40001", "40P01"})
_UNREACHABLE_PREFIXES: Final = ("08", "57P", "25P03")
_BUSY: Final[Mapping[str, str]] = {
    "55P03": "was held by others for too long; ask again",
    "57014": "took too long over one statement and stopped it; ask again, or for less",
    _NO_CONNECTION: "has no connection left; ask again, or have fewer of them in each process",
}
_BROKEN: Final[Mapping[str, str]] = {
    "53100": "has no space left; nothing was stored: free some space and try again",
    "42501": "does not let this user do that; grant it all rights on the schema and on what lies in it",
    _READ_ONLY: "only lets read; it may be a standby: name the server that writes",
}
_INVALID: Final[Mapping[str, tuple[str, str]]] = {
    "22003": ("number", "does not fit into 64 bits"),
    "22021": ("text", "holds a character that cannot be stored"),
    "22P05": ("text", "holds a character that cannot be stored"),
    "54000": ("text", "is too long for something that is looked up by it"),
}
_REFUSED: Final = re.compile(
    r"no password|not support SSL|certificate|FATAL: "
    r"(?!.*(the database system is|recovery|terminating|connect failed|query_wait))"
)
_FULL: Final = re.compile(r"FATAL: .*(too many|connection slots|no more connections allowed)")
"""Messages of a server or pooler that refuses a connection; the driver reports no SQLSTATE."""
_MISSPELT: Final = re.compile(r"invalid (connection option|port number|\w+ value)")


class RolledBack(StorageBusy):
    """The database rolled back a transaction because of another one; it may be repeated."""


class ConnectionLost(StorageBusy):
    """The connection failed: everything uncommitted is rolled back."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{fault}; acknowledged writes are stored. Try again")
        self._fault = fault

    def as_unknown_outcome(self) -> WriteOutcomeUnknown:
        """Return the error for a commit whose confirmation was lost."""
        return WriteOutcomeUnknown(
            f"{self._fault}; this write may or may not have been stored;"
            " documents that have keys of their own can be written again, for others look first"
        )


@contextmanager
def convert_errors(name: str) -> Iterator[None]:
    """Convert errors of the driver to ours; `name` is the database in messages."""
    try:
        yield
    except DBAPIError as error:
        raise _to_our_error(error.orig, name) from error
    except psycopg.Error as error:
        raise _to_our_error(error, name) from error
    except PoolTimeout as error:
        raise StorageBusy(f"{name}: all connections of this process are in use; try again") from error
    except SQLAlchemyError as error:
        raise StorageError(f"{name}: {error}") from error
    except UnicodeEncodeError as error:
        raise InvalidInput("text", "holds an unpaired surrogate, which cannot be stored") from error


def _to_our_error(error: BaseException | None, name: str) -> ConspectusError:
    state = getattr(error, "sqlstate", None) or ""
    reason = str(error).strip().split("\n")[0]
    if state == _UNIQUE_VIOLATION:
        return Conflict("row", reason, "exists already")
    if state in _INVALID:
        return InvalidInput(*_INVALID[state])
    if state == _UNSUPPORTED and "recovery" in reason:
        state = _READ_ONLY
    if not state and _FULL.search(str(error)):
        state = _NO_CONNECTION
    if state in _BUSY:
        return StorageBusy(f"{name} {_BUSY[state]} ({reason})")
    if state in _BROKEN:
        return StorageError(f"{name} {_BROKEN[state]} ({reason})")
    if state in _ROLLED_BACK:
        return RolledBack(f"{name} undid a transaction for another: {reason}")
    return _to_other_error(error, state, name, reason)


def _to_other_error(error: BaseException | None, state: str, name: str, reason: str) -> ConspectusError:
    """Return the error for errors without an SQLSTATE in the tables above."""
    if not state and _MISSPELT.search(reason):
        return InvalidInput("path", f"cannot connect: {reason}")
    if state.startswith(_UNREACHABLE_PREFIXES) or (isinstance(error, psycopg.OperationalError) and not state):
        if _REFUSED.search(str(error)):
            return StorageError(
                f"{name} refuses the connection; check user, password, name and TLS ({reason})"
            )
        return ConnectionLost(f"{name} does not answer ({reason})")
    if isinstance(error, psycopg.DataError):
        return InvalidInput("text", f"cannot be stored: {reason}")
    return StorageError(f"{name}: {reason}")
