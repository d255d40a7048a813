"""Arguments that other programs pass and Conspectus does not support."""

from collections.abc import Iterable

from conspectus.errors import InvalidInput


def refuse_arguments(names: Iterable[str]) -> None:
    """Raise InvalidInput for the first of these arguments."""
    for name in sorted(names):
        raise InvalidInput(name, "is not an argument of this call; leave it out")
