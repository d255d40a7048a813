"""Addresses of entities: the same for the same entity, and another one for another."""

import hashlib
from typing import Final

import regex

from conspectus.graph.name_keys import key_of

BASE: Final = "conspectus://entity/"
_MARKS: Final = regex.compile(r"[^\p{L}\p{M}\p{N}]++")
_DIGITS: Final = 12


def uri_of(name: str, type: str, *, base: str = BASE, id: str | None = None) -> str:
    """The address of an entity: the base, its name and `#` its type, both in plain lower case.

    Where an id is given that is not the plain name, a digest of it stands before the name, so that two
    entities of one name and type keep apart. What is an address with this base already stays as it is.
    """
    if name.startswith(base):
        return name
    plain = plain_of(name)
    apart = "" if id is None or id == plain else f"{_digest(id)}/"
    return f"{base}{apart}{plain}#{plain_of(type)}"


def plain_of(name: str) -> str:
    """A name in lower case with `_` for whatever is no letter or digit; a digest where nothing is left."""
    return _MARKS.sub("_", key_of(name)).strip("_") or _digest(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
