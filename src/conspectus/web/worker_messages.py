"""Messages between a server and its workers, over pipes, which no other process can read.

A worker reads its configuration as a line of JSON, and then commands; the end of its input means that the
server has ended. It writes its state, and once a second a heartbeat.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from conspectus.deferred import dataclass
from conspectus.settings import Settings

SERVING: Final = b"serving\n"
READY: Final = b"ready\n"
ALIVE: Final = b"alive\n"
LEAVE: Final = b"leave\n"
"""Take no new connection, and end when those that are there fall silent."""
STOP: Final = b"stop\n"
"""Stop as a whole server does."""
CHILD: Final = """
import os, sys
os.environ['{variable}'] = sys.argv[1]
from conspectus.web.warmup import frozen_gc
with frozen_gc():
    from conspectus.web.server_process import main
main()
"""


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """The configuration of a worker:

    a store, an inherited socket, and a folder for metrics. It `joins` others that are ready.
    """

    settings: Settings
    path: str | None
    listener: int
    counted: str
    joins: bool = False

    def written(self) -> bytes:
        """As a line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "WorkerMessage":
        """Read the result of `written`."""
        members = json.loads(line)
        return cls(**{**members, "settings": Settings(**members["settings"])})


def command(variable: str, folder: Path) -> list[str]:
    """The program of a worker, for which a variable of its environment names a folder."""
    return [sys.executable, "-P", "-c", CHILD.format(variable=variable), str(folder)]
