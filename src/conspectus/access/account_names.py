"""Which names accounts and groups can have."""

from conspectus.errors import InvalidInput
from conspectus.model.ids import LOCAL, is_uuid
from conspectus.model.query import EVERYWHERE
from conspectus.text.clean import clean

LONGEST = 100
RESERVED = {LOCAL, EVERYWHERE, ".", ".."}
"""What stands for something else in names of collections, questions and addresses."""


def account_name(name: str) -> str:
    """The name, if an account or a group can have it. Raises InvalidInput."""
    if not 1 <= len(name) <= LONGEST or not name.isprintable() or name != name.strip() or "/" in name:
        raise InvalidInput("name", f"has 1 to {LONGEST} characters that can be seen, and no slash")
    if is_uuid(name):
        raise InvalidInput("name", "has the form of an id; choose another name")
    if name in RESERVED:
        raise InvalidInput("name", f"{name!r} stands for something else")
    return name


def label_text(label: str) -> str:
    """What a key is called, if it can be stored and shown. Raises InvalidInput."""
    if len(label) > LONGEST or not clean(label).isprintable():
        raise InvalidInput("label", f"has at most {LONGEST} characters that can be seen")
    return clean(label)
