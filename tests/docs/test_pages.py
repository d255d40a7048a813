"""Every Python program, shell command and MCP configuration of the README and the manual runs as it stands.

The blocks of a page run in their order in one empty folder. The first pages of Get started, up to the chat,
run as one page. `conspectus serve` runs until the page ends; a page that asks a server without it has one
over the same folder. There is a chat model that answers.
"""

import asyncio
import json
import os
import re
import shlex
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.chat_server import ChatServer
from tests.support.web_server import Answer, ScriptedServer

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
FIRST_PAGES = [f"docs/get-started/{name}.md" for name in ("install", "first-program", "your-files", "chat")]
PAGES["docs/get-started"] = "\n".join(PAGES.pop(name) for name in FIRST_PAGES)
RUN = [name for name, text in PAGES.items() if BLOCK.search(text)]
MCP = re.compile(r"^```json\n(\{[^`]*\"mcpServers\".*?)^```$", re.MULTILINE | re.DOTALL)
MCP_PAGES = [name for name, text in PAGES.items() if MCP.search(text)]
SERVE = "conspectus serve"
PORT = "8642"
MESSAGE = {"role": "assistant", "content": "We were talking about the meeting."}
SAID = {
    "id": "r", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip


SELDOM = {
    f"docs/{name}.md"
    for name in (
        "concepts/as-of",
        "concepts/scores",
        "concepts/window",
        "guides/agent-context",
        "guides/documents",
        "guides/frameworks",
        "guides/graph",
        "guides/mcp",
        "guides/memory",
        "guides/openai-proxy",
        "guides/permissions",
        "guides/tasks",
        "guides/team-chat",
        "guides/video",
    )
}
"""Pages that only `make bench` runs: the tests of these parts run the same calls."""


def page_parameters(pages: list[str]) -> list[Any]:
    """Pages as parameters, those that are run seldom marked."""
    return [
        pytest.param(page, marks=pytest.mark.slow) if is_tried_elsewhere(page) else page for page in pages
    ]


def is_tried_elsewhere(page: str) -> bool:
    """Whether `make wheel` follows a page, or it has only commands, which test_page_commands.py parses."""
    return page in {"docs/get-started", *SELDOM} or all(
        (kind, output) == ("sh", "") and "curl" not in block
        for kind, block, output in BLOCK.findall(PAGES[page])
    )


@asynccontextmanager
async def serve_pages(folder: Path, settings: dict[str, str], command: str) -> AsyncIterator[str]:
    """The port of a server over the folder's data."""
    server = await asyncio.create_subprocess_exec(
        *shlex.split(command), "--port", "0", cwd=folder, env=settings, stdout=PIPE, stderr=PIPE
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


async def run_block(language: str, block: str, folder: Path, settings: dict[str, str]) -> str:
    """What a block prints; it must end well."""
    command = ["python", "-c", block] if language == "python" else ["bash", "-euc", block]
    program = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=settings, stdout=PIPE, stderr=PIPE
    )
    output, errors = await program.communicate()
    assert program.returncode == 0, f"{block}\n{output.decode()}\n{errors.decode()}"
    return output.decode()


@asynccontextmanager
async def chat_surroundings(programs: Path) -> AsyncIterator[dict[str, str]]:
    """The environment of a page: no settings but those of two servers that answer chats."""
    answer = Answer(json.dumps(SAID).encode(), type="application/json")
    async with (
        ChatServer(["Every night", " at two [1]."]) as chat,
        ScriptedServer({"/v1/chat/completions": answer}) as openai,
    ):
        settings = {name: value for name, value in os.environ.items() if not name.startswith("CONSPECTUS_")}
        settings |= {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KEY": "csp_any",
        }
        settings |= {"OPENAI_BASE_URL": f"{openai.base}/v1", "OPENAI_API_KEY": "none"}
        yield settings | {"CONSPECTUS_CHAT_MODEL": "openai:m", "CONSPECTUS_CHAT_BASE_URL": chat.url}


@pytest.mark.parametrize("page", page_parameters(RUN))
async def test_blocks_of_a_page_run_as_they_stand(page: str, tmp_path: Path, preloaded: Path) -> None:
    (tmp_path / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
    port = PORT
    async with AsyncExitStack() as servers:
        settings = await servers.enter_async_context(chat_surroundings(preloaded)) | {
            "CURL_HOME": str(tmp_path)
        }
        for kind, block, output in BLOCK.findall(PAGES[page]):
            command = block.strip() if block.startswith(SERVE) else f"{SERVE} --no-auth"
            if port == PORT and (block.startswith(SERVE) or PORT in block):
                port = await servers.enter_async_context(serve_pages(tmp_path, settings, command))
            if not block.startswith(SERVE):
                printed = await run_block(kind, block.replace(PORT, port), tmp_path, settings)
                assert not output or printed == output


@pytest.mark.parametrize("page", page_parameters(MCP_PAGES))
async def test_an_mcp_configuration_of_a_page_starts_a_server_with_tools(page: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for block in MCP.findall(PAGES[page]):
        [program] = json.loads(block.replace("/home/ann", str(tmp_path)))["mcpServers"].values()
        server = StdioServerParameters(**program, cwd=tmp_path, env={"PATH": path})
        async with Client(server) as client:
            assert (await client.list_tools()).tools


def test_the_readme_is_short_and_begins_with_a_program_and_its_output() -> None:
    kind, block, output = BLOCK.findall(PAGES["README.md"])[0]
    assert (kind, bool(block), bool(output)) == ("python", True, True)
    assert PAGES["README.md"].count("\n") <= 110
