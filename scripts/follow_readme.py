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
SERVE_COMMAND = "conspectus serve"
PORT = "8642"
HOME = "/home/ann"
MIN_BLOCKS = 5
MAX_SECONDS = 120
ANSWER = "Copy the folder back [1]."
ANSWER_CHOICES = (
    {"delta": {"role": "assistant", "content": ANSWER}},
    {"delta": {}, "finish_reason": "stop"},
)
INITIALIZE_REQUEST = {
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
        for choice in ANSWER_CHOICES:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            line = json.dumps({**chunk, "choices": [{"index": 0, **choice}]})
            self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


def main() -> None:
    """Follow the README with the interpreter of the command line."""
    print(follow_readme(Path(sys.argv[1]).absolute()))


def follow_readme(python: Path) -> str:
    """Run each block; exit if one fails or prints something else."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    if sum(SERVE_COMMAND in block for _, block, _ in blocks) != 1 or len(blocks) < MIN_BLOCKS:
        sys.exit("the README has no five ways with one server")
    with tempfile.TemporaryDirectory() as temporary, chat_model() as chat_address:
        readme = Readme(python, Path(temporary), environment(python, chat_address))
        try:
            for language, block, output in blocks:
                readme.follow(language, block, output)
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

    def follow(self, language: str, block: str, output: str) -> None:
        """Run a block; exit if it fails or prints something else than this output."""
        lines = block.replace(PORT, self._port).replace(HOME, str(self._folder))
        if block.startswith(SERVE_COMMAND):
            self._serving, self._port = start_server(lines, self._folder, self._variables)
        elif language == "json":
            try_mcp(json.loads(lines), self._folder, self._variables)
        else:
            command = [str(self._python), "-c", lines] if language == "python" else ["bash", "-euc", lines]
            printed = run_program(command, self._folder, self._variables)
            if output and printed != output:
                sys.exit(f"the README shows\n{output}\nbut this prints\n{printed}")

    def close(self) -> None:
        """End the server, if one was started."""
        if self._serving is not None:
            self._serving.terminate()
            self._serving.wait(MAX_SECONDS)


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
    inherited = {
        name: content
        for name, content in os.environ.items()
        if not name.startswith(("PYTHON", "CONSPECTUS", "VIRTUAL"))
    }
    chat = {"CONSPECTUS_CHAT_MODEL": "openai:m", "CONSPECTUS_CHAT_BASE_URL": chat_address}
    path = os.pathsep.join((str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"))
    return inherited | chat | {"PATH": path, "OPENAI_API_KEY": "none"}


def start_server(lines: str, folder: Path, variables: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
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
        client_folder = folder / "client"
        client_folder.mkdir(exist_ok=True)
        command = [str(program["command"]), *map(str, arguments)]
        process = subprocess.run(
            command, cwd=client_folder, env=variables, input=json.dumps(INITIALIZE_REQUEST) + "\n",
            capture_output=True, text=True, timeout=MAX_SECONDS, check=False,
        )  # fmt: skip
        if "serverInfo" not in process.stdout or list(client_folder.iterdir()):
            sys.exit(f"{command} said {process.stdout}{process.stderr}")


def run_program(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Return what a command prints; exit if it fails."""
    process = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )
    if process.returncode != 0:
        sys.exit(f"{command[-1]}\nended with {process.returncode}:\n{process.stdout}{process.stderr}")
    return process.stdout


if __name__ == "__main__":
    main()
