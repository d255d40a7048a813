"""Settings of the interpreter for servers: garbage collection and threads hold up no request for long."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""Seconds that a thread waits for another one that computes; Python's default is 5 ms."""
COLLECTION_THRESHOLDS: Final = (2_000, 10, 100)
"""Ten times fewer full garbage collections than by default. Each holds up every request, often for 40 ms."""


@contextmanager
def freeze_gc() -> Iterator[None]:
    """Exclude all objects made in the block or before it from garbage collection.

    Repeated collections take a fifth of a server's start, and would delay requests later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def short_waits() -> Iterator[None]:
    """Let no thread and no garbage collection hold up the others for long during the block."""
    seconds, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(seconds)
