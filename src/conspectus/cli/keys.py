"""keys: manage API keys."""

from collections.abc import Sequence
from typing import Final

from conspectus.cli.command import Arguments, Command
from conspectus.cli.output import rows_table
from conspectus.cli.people import account_names
from conspectus.cli.session import Session
from conspectus.model.access import Key, NewKey

OWNER = "owner"


def _show_keys(session: Session, keys: Sequence[Key], _: Arguments) -> None:
    names = account_names(session)
    columns = ("id", "user", "label", "scopes", "origin", "created", "expires", "last used", "revoked")
    rows = (
        (
            key.id, names.get(key.user, key.user), key.label, " ".join(key.scopes), key.origin, key.created,
            key.expires, key.last_used, key.revoked,
        )
        for key in keys
    )  # fmt: skip
    session.show_or_exit(keys, rows_table(columns, rows), "no keys")


def _own_store(session: Session, arguments: Arguments) -> None:
    session.new = arguments["user"] == OWNER


def _show_once(session: Session, new_key: NewKey, _: Arguments) -> None:
    ends = (
        "never expires"
        if new_key.key.expires is None
        else f"expires {new_key.key.expires:%Y-%m-%d %H:%M} UTC"
    )
    session.note(f"key {new_key.key.id} with the scopes {' '.join(new_key.key.scopes)} {ends}")
    session.note("store the secret now; it is not shown again")
    session.show(new_key, new_key.secret)


KEYS_COMMANDS: Final = {
    "list": Command(
        "keys:KeyService.list", "List API keys without their secrets.",
        arguments={"user": "USER"}, defaults={"user": "*"}, show=_show_keys, limit=100,
    ),
    "create": Command(
        "keys:KeyService.create", "Create an API key. Its secret is shown once.",
        arguments={"user": "USER"}, options={"scopes": "--scope"}, defaults={"user": OWNER},
        prepare=_own_store, show=_show_once,
    ),
    "revoke": Command("keys:KeyService.revoke", "Revoke an API key.", "revoked the key {key}"),
    "rotate": Command(
        "keys:KeyService.rotate", "Replace an API key. The new secret is shown once.",
        show=_show_once,
    ),
}  # fmt: skip
