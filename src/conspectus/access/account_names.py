"""Names of users and groups, and labels of keys."""

from conspectus.errors import InvalidInput
from conspectus.model.ids import LOCAL, is_uuid
from conspectus.model.query import EVERYWHERE
from conspectus.text.clean import clean

MAX_NAME_LENGTH = 100
OWNER_NAME = "owner"
"""The name of the account of the store's owner."""
RESERVED = {LOCAL, EVERYWHERE, ".", ".."}
"""Names with a special meaning in collection names, queries and URLs."""


def account_name(name: str) -> str:
    """Return a name if it is valid for a user or group. Raises InvalidInput."""
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable() or name != name.strip() or "/" in name:
        raise InvalidInput("name", f"must have 1 to {MAX_NAME_LENGTH} visible characters and no slash")
    if is_uuid(name):
        raise InvalidInput("name", "has the form of an id; choose another name")
    if name in RESERVED:
        raise InvalidInput("name", f"{name!r} is a reserved name; choose another")
    return name


def label_text(label: str) -> str:
    """Return the label of a key if it is valid. Raises InvalidInput."""
    if len(label) > MAX_NAME_LENGTH or not clean(label).isprintable():
        raise InvalidInput("label", f"must have at most {MAX_NAME_LENGTH} visible characters")
    return clean(label)
