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
"""Take no new connection, and end when the open ones are idle."""
STOP: Final = b"stop\n"
"""Stop as a server of one process does."""
WORKER_PROGRAM: Final = """
import os, sys
os.environ['{variable}'] = sys.argv[1]
from conspectus.web.warmup import freeze_gc
with freeze_gc():
    from conspectus.web.server_process import main
main()
"""


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """The configuration of a worker: a store, an inherited socket, and a folder for metrics.

    `joins` says that other workers of the server are ready.
    """

    settings: Settings
    path: str | None
    listener: int
    metrics_folder: str
    joins: bool = False

    def to_line(self) -> bytes:
        """Return the message as a line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "WorkerMessage":
        """Read the result of `to_line`."""
        members = json.loads(line)
        return cls(**{**members, "settings": Settings(**members["settings"])})


def command(variable: str, folder: Path) -> list[str]:
    """Return the command of a worker, in whose environment a variable names a folder."""
    return [sys.executable, "-P", "-c", WORKER_PROGRAM.format(variable=variable), str(folder)]
