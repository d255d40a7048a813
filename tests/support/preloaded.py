"""Python programs and `conspectus` in forks of a process that has used an engine, which saves their start.

For tests of what a program does. A test of how a program starts, or that kills it, uses `sys.executable`.
The commands in a folder are clients of the process. They pass their arguments, environment, folder and
standard streams to it, pass signals on, and exit as their program does.
"""

import gc
import importlib
import marshal
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import conspectus

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = (
    *("conspectus.cli.documents", "conspectus.cli.search", "conspectus.cli.serve", "conspectus.web.serve"),
    *("conspectus.mcp.server", "conspectus.sources.files.local_files", "lxml.etree"),
)
"""What programs import beside what an engine does."""
MAX_MESSAGE_BYTES = 1_000_000
STANDARD_STREAMS = (0, 1, 2)
ADDRESS = "socket"
CLIENT = """#!{python} -SE
import marshal, os, signal, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect({address!r})
program = marshal.dumps(({name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)))
socket.send_fds(connection, [program], [0, 1, 2])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: connection.send(bytes([number])))
code = int(connection.recv(100))
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@dataclass(frozen=True)
class Program:
    """What a client asks for: `python` or `conspectus` with its arguments."""

    name: str
    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    streams: Sequence[int]

    def run(self) -> None:
        """Become the program: its folder, environment and streams are those of this process from now on."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        for number, stream in zip(STANDARD_STREAMS, self.streams, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        # As Python opens them when it starts.
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.name == "conspectus":
            sys.argv = ["conspectus", *self.arguments]
            importlib.import_module("conspectus.cli.entry").main()
        elif self.arguments[0] == "-c":
            sys.argv = ["-c", *self.arguments[2:]]
            sys.path.insert(0, "")
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(self.arguments[1], "<string>", "exec"), vars(sys.modules["__main__"]))
        else:
            sys.argv = list(self.arguments)
            sys.path.insert(0, str(Path(self.arguments[0]).parent))
            runpy.run_path(self.arguments[0], run_name="__main__")


@contextmanager
def preloaded_commands(folder: Path) -> Iterator[Path]:
    """The folder with the commands `python` and `conspectus`, which work until the block ends."""
    address = folder / ADDRESS
    for name in ("python", "conspectus"):
        client = folder / name
        client.write_text(CLIENT.format(python=sys.executable, address=str(address), name=name))
        client.chmod(0o755)
    # The threads of the tokenizers would never end.
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        command = [sys.executable, "-m", __name__, str(listener.fileno())]
        server = subprocess.Popen(
            command, cwd=ROOT, env=variables, pass_fds=[listener.fileno()], stdin=subprocess.PIPE
        )
    with server:
        yield folder
        assert server.stdin is not None
        server.stdin.close()
    assert server.returncode == 0


class ForkServer:
    """Forks for each program that a client asks for, and tells the client how it ended."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._processes: dict[socket.socket, BaseProcess] = {}

    def serve(self) -> None:
        """Fork until standard input ends; then no program is left."""
        while (sources := self._wait()) != [sys.stdin.fileno()]:
            for source in sources:
                if source is self._listener:
                    self._start_program()
                elif source in self._processes:
                    self._pass_signal(source)
            for client, process in list(self._processes.items()):
                if process.exitcode is not None:
                    self._report_end(client)
        for process in self._processes.values():
            process.kill()

    def _wait(self) -> list[Any]:
        """Return what has news: clients, the listener, ends of programs; or standard input, which ended."""
        ends = [process.sentinel for process in self._processes.values()]
        sources = wait([sys.stdin.fileno(), self._listener, *self._processes, *ends])
        return [sys.stdin.fileno()] if sys.stdin.fileno() in sources else sources

    def _start_program(self) -> None:
        client, _ = self._listener.accept()
        message, streams, _, _ = socket.recv_fds(client, MAX_MESSAGE_BYTES, len(STANDARD_STREAMS))
        name, arguments, folder, environment = marshal.loads(message)
        program = Program(name, arguments, folder, environment, streams)
        self._processes[client] = process = get_context("fork").Process(target=program.run)
        process.start()
        for stream in streams:
            os.close(stream)

    def _pass_signal(self, client: socket.socket) -> None:
        """Send the program the signal that its client got, or kill it with its client."""
        process, number = self._processes[client], client.recv(1)
        if number and process.pid is not None:
            os.kill(process.pid, number[0])
        else:
            process.kill()
            self._report_end(client)

    def _report_end(self, client: socket.socket) -> None:
        process = self._processes.pop(client)
        process.join()
        with client, suppress(BrokenPipeError):
            client.send(str(process.exitcode).encode())


def prepare() -> None:
    """Import what programs need, and use an engine once: statements are compiled, and classes complete."""
    for name in IMPORTED:
        importlib.import_module(name)
    with TemporaryDirectory() as folder, conspectus.open(folder) as engine:
        engine.add(["The backup runs every night."], wait=True)
        engine.window("when does the backup run?")
    gc.collect()
    gc.freeze()
    # A fork has no other threads, and would wait for them forever.
    assert len(list(Path("/proc/self/task").iterdir())) == 1


def main() -> None:
    """Fork for programs until standard input ends."""
    prepare()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        ForkServer(listener).serve()


if __name__ == "__main__":
    main()
