"""Hashes of texts, ids derived from them, and length limits of keys."""

import hashlib
import uuid
from datetime import datetime
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.model.parameters import MAX_KEY, MAX_NAME
from conspectus.text.name_keys import relation_key
from conspectus.text.times import canonical

_NAMESPACE = uuid.UUID("6f1d3c52-8f0b-5e0e-9a4e-2f6f0a7c9b11")


def content_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8 as lower-case hexadecimal; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stable_id(*parts: str) -> str:
    """Return a UUID (36 characters) that depends only on the parts and their borders."""
    digest = hashlib.sha1(_NAMESPACE.bytes, usedforsecurity=False)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return str(uuid.UUID(bytes=digest.digest()[:16], version=5))


def edge_id(graph: str, source: str, target: str, type: str, valid_from: datetime | None) -> str:
    """Return the id of an edge by its graph, ends, type in any spelling, and start."""
    return edge_id_as_spelled(graph, source, target, relation_key(type), valid_from)


def edge_id_as_spelled(graph: str, source: str, target: str, type: str, valid_from: datetime | None) -> str:
    """Return the id that the edge had before spellings of a type shared one: stored edges keep it."""
    begins = "" if valid_from is None else canonical(valid_from)
    return stable_id("edge", graph, source, target, type, begins)


NAME_BYTES: Final = MAX_NAME
KEY_BYTES: Final = MAX_KEY


def fits(text: str, maximum: int) -> bool:
    """Return whether a text has at most `maximum` bytes in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass")) <= maximum


def require_fitting(field: str, text: str, maximum: int) -> str:
    """Return the text if it has at most `maximum` bytes in UTF-8. Raises InvalidInput."""
    if not fits(text, maximum):
        raise InvalidInput(field, f"has more than {maximum} bytes in UTF-8; shorten it")
    return text
