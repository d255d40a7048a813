"""A program that moves a store in one process after the other, each killed somewhere but the last.

    mover.py SOURCE TARGET SEED KILLS [LARGEST]

No file may grow beyond LARGEST bytes, if that is given. It prints what each process was ended by, and what
the last one did.
"""

import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable

from conspectus.bootstrap.transfer import move
from conspectus.settings import Settings

SETTINGS = Settings(lock_timeout_seconds=20)
MAX_PAGES = 120


def main(source: str, target: str, chance: random.Random, kills: int) -> None:
    """Move to the end at last."""
    ends = [
        run_in_process(lambda: move(source, target, settings=SETTINGS, progress=progress_that_kills(chance)))
        for _ in range(kills)
    ]
    moved = move(source, target, settings=SETTINGS).moved
    print(json.dumps({"ends": ends, "resumed": moved.resumed, "written": moved.written}))


def progress_that_kills(chance: random.Random) -> Callable[[str, int, int], None]:
    """Progress that ends the process a moment after some page."""
    left, moment = chance.randrange(1, MAX_PAGES), chance.uniform(0.0001, 0.01)

    def report(what: str, done: int, total: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            signal.setitimer(signal.ITIMER_REAL, moment)

    return report


def run_in_process(work: Callable[[], object]) -> int:
    """Do it in a process of its own, and say how that ended: the signal, or 0."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def limit_file_size(largest: int) -> None:
    """Let every write beyond a file's size fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))


if __name__ == "__main__":
    for largest in sys.argv[5:]:
        limit_file_size(int(largest))
    main(sys.argv[1], sys.argv[2], random.Random(int(sys.argv[3])), int(sys.argv[4]))
