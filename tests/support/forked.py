"""The command `conspectus` in a fork of a process that has loaded it, which saves the time of its imports.

For tests that need a server and do not test how a program starts.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TextIO

from conspectus.cli.entry import main

LOADED = [__name__, "conspectus.cli.main", "conspectus.cli.serve", "conspectus.web.serve"]


@contextmanager
def forked(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[TextIO]:
    """What the command prints; it is terminated at the end of the block."""
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(arguments, dict(environment), writing))
    process.start()
    writing.close()
    with reading, open(reading.fileno(), encoding="utf-8", closefd=False) as printed:
        try:
            yield printed
        finally:
            process.terminate()
            printed.read()
            process.join()
    assert process.exitcode == 0, process.exitcode


def _run(arguments: Sequence[str], environment: Mapping[str, str], output: Connection) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(output.fileno(), 1)
    output.close()
    sys.argv = ["conspectus", *arguments]
    with open(1, "w", encoding="utf-8", closefd=False) as sys.stdout:
        main()
