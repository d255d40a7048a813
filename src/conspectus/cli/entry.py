"""The entry point of the program `conspectus`."""

import importlib
import os
import signal
import sys
from types import FrameType

from conspectus.web.warmup import freeze_gc

INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Load and run the program. An interrupt exits with 130, also while loading."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _exit_at_once)
    with freeze_gc():
        program = importlib.import_module("conspectus.cli.main")
    try:
        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        program.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        if is_default:
            signal.signal(signal.SIGINT, _exit_at_once)


def _exit_at_once(_: int, __: FrameType | None) -> None:
    """Exit at once: nothing is open, and some modules turn an interrupted import into another error."""
    os._exit(INTERRUPTED)
