"""Every Python program and every shell command of the README and the manual runs as it stands.

The blocks of a page run in their order in one folder, beside the files of examples/. A page that asks
a server finds one over the same folder. There is a chat model that answers.
"""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from shutil import copytree

import pytest
from tests.support.chat_server import ChatServer
from tests.support.web_server import Answer, ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text(encoding="utf-8"))
]
PORT = "8642"
MESSAGE = {"role": "assistant", "content": "We were talking about the meeting."}
SAID = {
    "id": "r", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip


@asynccontextmanager
async def served(folder: Path, settings: dict[str, str]) -> AsyncIterator[str]:
    """The port of a server over the folder's data."""
    command = ("conspectus", "serve", "--no-auth", "--port", "0")
    server = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=settings, stdout=PIPE, stderr=PIPE
    )
    assert server.stderr is not None
    try:
        while b"listening on" not in (line := await server.stderr.readline()):
            assert line, "the server did not start"
        yield line.decode().split()[2].rpartition(":")[2]
    finally:
        if server.returncode is None:
            server.terminate()
        await server.communicate()


async def ran(language: str, block: str, folder: Path, settings: dict[str, str]) -> str:
    """What a block prints; it must end well."""
    command = [sys.executable, "-c", block] if language == "python" else ["bash", "-euc", block]
    program = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=settings, stdout=PIPE, stderr=PIPE
    )
    said, complained = await program.communicate()
    assert program.returncode == 0, f"{block}\n{said.decode()}\n{complained.decode()}"
    return said.decode()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
async def test_blocks_of_a_page_run_as_they_stand(page: Path, tmp_path: Path) -> None:
    copytree(ROOT / "examples", tmp_path / "examples")
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    answer = Answer(json.dumps(SAID).encode(), type="application/json")
    async with AsyncExitStack() as servers:
        chat = await servers.enter_async_context(ChatServer(["Every night", " at two [1]."]))
        openai = await servers.enter_async_context(ScriptedServer({"/v1/chat/completions": answer}))
        settings = {name: value for name, value in os.environ.items() if not name.startswith("CONSPECTUS_")}
        settings |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "KEY": "csp_any"}
        settings |= {"OPENAI_BASE_URL": f"{openai.base}/v1", "OPENAI_API_KEY": "none"}
        settings |= {"CONSPECTUS_CHAT_MODEL": "openai:m", "CONSPECTUS_CHAT_BASE_URL": chat.url}
        port = PORT
        if any(PORT in block for _, block, _ in blocks):
            port = await servers.enter_async_context(served(tmp_path, settings))
        for kind, block, output in blocks:
            said = await ran(kind, block.replace(PORT, port), tmp_path, settings)
            assert not output or said == output


def test_the_readme_begins_with_a_program_and_its_output() -> None:
    kind, block, output = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    assert (kind, bool(block), bool(output)) == ("python", True, True)
