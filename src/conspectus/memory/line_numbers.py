"""Faults of lines that were handed on in batches, with the numbers that they have in the whole."""

import re
from collections.abc import Callable
from typing import Final

from conspectus.errors import InvalidInput

NAMED: Final = re.compile(r"line (\d+)")


def renumber(fault: InvalidInput, number_of: Callable[[int], int]) -> None:
    """Let a fault name the line whose number in the whole belongs to the one that it names."""
    if found := NAMED.fullmatch(fault.field):
        fault.field = f"line {number_of(int(found[1]))}"
        fault.args = (f"{fault.field}: {fault.reason}",)
