"""Checkpoints: what packing calls again and again, so that its caller can end it."""

from collections.abc import Callable
from typing import TypeAlias

Checkpoint: TypeAlias = Callable[[], None]
"""Is called every few milliseconds at least, and raises an error to end the work."""


def proceed() -> None:
    """Let the work go on: the checkpoint of work that nobody ends."""
