"""Loading what stays for as long as the process does."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def for_good() -> Iterator[None]:
    """Nothing made in the block, or before it, is ever looked at for whether it is garbage.

    Looking again and again takes a fifth of a server's start, and later it would hold up requests.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
