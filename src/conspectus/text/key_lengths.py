"""How long a text may be that something is looked up by: what the index of every database takes.

Two names may stand in one row of an index, but only one key or thread. Sizes are in bytes of UTF-8.
"""

from typing import Final

from conspectus.errors import InvalidInput

NAME_BYTES: Final = 1_000
KEY_BYTES: Final = 2_048


def fits(text: str, most: int) -> bool:
    """Whether a text has at most so many bytes."""
    return len(text.encode("utf-8", "surrogatepass")) <= most


def fitting(field: str, text: str, most: int) -> str:
    """The text, if it has at most so many bytes. Raises InvalidInput."""
    if not fits(text, most):
        raise InvalidInput(field, f"is looked up, so it has at most {most} bytes in UTF-8; shorten it")
    return text
