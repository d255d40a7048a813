"""Run the five ways of the README in an empty folder, with an installed wheel and nothing of the checkout.

    python scripts/follow_readme.py PYTHON

PYTHON is that of an environment with the wheel and its extras mcp and openai. Each block runs as it stands;
only the port and the home of Ann are other ones. The chat model always gives the same answer.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|sh|json)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
SERVE = "conspectus serve"
PORT = "8642"
HOME = "/home/ann"
WAYS = 5
PATIENCE = 120
ANSWER = "Copy the folder back [1]."
CHUNKS = (
    {"delta": {"role": "assistant", "content": ANSWER}},
    {"delta": {}, "finish_reason": "stop"},
)
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "readme", "version": "1"},
    },
}  # fmt: skip


class ChatModel(BaseHTTPRequestHandler):
    """A chat model that gives one answer as a stream."""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for choice in CHUNKS:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            line = json.dumps({**chunk, "choices": [{"index": 0, **choice}]})
            self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


def main() -> None:
    """Follow the README with the given interpreter."""
    print(followed(Path(sys.argv[1]).absolute()))


def followed(python: Path) -> str:
    """Run each block; the end of everything if one fails or prints something else."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    if sum(SERVE in block for _, block, _ in blocks) != 1 or len(blocks) < WAYS:
        sys.exit("the README has no five ways with one server")
    with tempfile.TemporaryDirectory() as made, chat_model() as chat_address:
        readme = Readme(python, Path(made), environment(python, chat_address))
        try:
            for language, block, shown in blocks:
                readme.follow(language, block, shown)
        finally:
            readme.close()
    return f"{len(blocks)} blocks of the README ran in an empty folder"


class Readme:
    """The blocks of the README in one folder, with the server that one of them starts."""

    def __init__(self, python: Path, folder: Path, variables: dict[str, str]) -> None:
        self._python = python
        self._folder = folder
        self._variables = variables
        self._port = PORT
        self._serving: subprocess.Popen[str] | None = None

    def follow(self, language: str, block: str, shown: str) -> None:
        """Run a block; the end of everything if it fails or prints something else than is shown."""
        lines = block.replace(PORT, self._port).replace(HOME, str(self._folder))
        if block.startswith(SERVE):
            self._serving, self._port = started(lines, self._folder, self._variables)
        elif language == "json":
            try_mcp(json.loads(lines), self._folder, self._variables)
        else:
            command = [str(self._python), "-c", lines] if language == "python" else ["bash", "-euc", lines]
            printed = ran(command, self._folder, self._variables)
            if shown and printed != shown:
                sys.exit(f"the README shows\n{shown}\nbut this prints\n{printed}")

    def close(self) -> None:
        """End the server, if one was started."""
        if self._serving is not None:
            self._serving.terminate()
            self._serving.wait(PATIENCE)


@contextmanager
def chat_model() -> Iterator[str]:
    """Return the address of the chat model while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def environment(python: Path, chat_address: str) -> dict[str, str]:
    """Return the environment of the programs: no setting but those of the chat model."""
    kept = {
        name: content
        for name, content in os.environ.items()
        if not name.startswith(("PYTHON", "CONSPECTUS", "VIRTUAL"))
    }
    chat = {"CONSPECTUS_CHAT_MODEL": "openai:m", "CONSPECTUS_CHAT_BASE_URL": chat_address}
    path = os.pathsep.join((str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"))
    return kept | chat | {"PATH": path, "OPENAI_API_KEY": "none"}


def started(lines: str, folder: Path, variables: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Start the server of the README on a free port; return it with the port."""
    command = ["bash", "-euc", f"exec {lines.strip()} --port 0"]
    serving = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
    for line in serving.stderr or ():
        if "listening on" in line:
            return serving, line.split()[2].rpartition(":")[2]
    sys.exit(f"{lines} did not start")


def try_mcp(config: dict[str, dict[str, dict[str, object]]], folder: Path, variables: dict[str, str]) -> None:
    """Start each server of an MCP configuration in a folder of its own, and greet it."""
    for program in config["mcpServers"].values():
        arguments = program["args"]
        assert isinstance(arguments, list)
        elsewhere = folder / "client"
        elsewhere.mkdir(exist_ok=True)
        command = [str(program["command"]), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=elsewhere, env=variables, input=json.dumps(HELLO) + "\n", capture_output=True,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        if "serverInfo" not in done.stdout or list(elsewhere.iterdir()):
            sys.exit(f"{command} said {done.stdout}{done.stderr}")


def ran(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Return what a command prints; the end of everything if it fails."""
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{command[-1]}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
