"""Stable names for content."""

import hashlib
import uuid

_NAMESPACE = uuid.UUID("6f1d3c52-8f0b-5e0e-9a4e-2f6f0a7c9b11")


def content_hash(text: str) -> str:
    """SHA-256 of the text in UTF-8, in lower-case hexadecimal; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stable_id(*parts: str) -> str:
    """A UUID (36 characters) that depends only on the parts and on where one ends and the next begins."""
    digest = hashlib.sha1(_NAMESPACE.bytes, usedforsecurity=False)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return str(uuid.UUID(bytes=digest.digest()[:16], version=5))
