"""The TypeScript client: its own tests, run by Node with a real server; and what its package consists of."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from conspectus.testing.chat_models import ScriptedChatModel
from tests.web.chatting import chats

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients" / "typescript"
ANSWER = ("Backups", " run\r", "every\n\n", " night [1].", "[DONE]", "é\u2028")


BLOCK = re.compile(r"^```ts\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENDLESS = re.compile(r"^```typescript\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""Blocks that wait for what never comes here: they have the right types."""
GUIDE = ROOT / "docs" / "guides" / "typescript.md"
PAGES = (pytest.param(GUIDE, marks=pytest.mark.slow), PACKAGE / "README.md")
TSC = str(PACKAGE / "node_modules" / "typescript" / "bin" / "tsc")
CHECKED = {
    "extends": str(PACKAGE / "test" / "tsconfig.json"),
    "compilerOptions": {"rootDir": "/"},
    "include": ["."],
}


async def run_node(folder: Path, *command: str, **environment: str) -> tuple[int | None, str]:
    """The exit status of a program of Node's, and what it wrote."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    running = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **environment, "PATH": path}, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await running.communicate()
    return running.returncode, output.decode()


@asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Where a server with a chat model is, and the key of its owner, as variables of the environment."""
    if not (PACKAGE / "dist" / "index.js").exists() and os.environ.get("CI") != "true":
        pytest.skip("the client is not built: make client")
    async with chats(folder, ScriptedChatModel(ANSWER), chat_disconnect_grace_seconds=60) as server:
        owner = await server.engine.keys.create_first()
        assert owner is not None
        await server.engine.add("The backup runs every night at two.", wait=True)
        yield {"CONSPECTUS_URL": server.url, "CONSPECTUS_API_KEY": owner.secret}


async def test_the_client_does_what_its_tests_say(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        status, output = await run_node(PACKAGE, "npm", "test", **server)
    assert status == 0, output
    assert re.search(r"^\S+ fail 0$", output, re.MULTILINE), output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_blocks_of_a_page_have_the_right_types_and_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    endless = "".join(f"void async function () {{\n{block}}};\n" for block in ENDLESS.findall(text))
    blocks = "\n".join([*BLOCK.findall(text), endless])
    (tmp_path / "node_modules" / "@conspectus").mkdir(parents=True)
    (tmp_path / "node_modules" / "@conspectus" / "client").symlink_to(PACKAGE)
    (tmp_path / "node_modules" / "@types").symlink_to(PACKAGE / "node_modules" / "@types")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(CHECKED))
    async with running_server(tmp_path) as server:
        (tmp_path / "page.ts").write_text(blocks.replace("http://127.0.0.1:8642", server["CONSPECTUS_URL"]))
        for program in (TSC, "page.ts"):
            status, output = await run_node(tmp_path, "node", program, **server)
            assert status == 0, output
    assert "Backups run" in output


def test_the_licence_of_the_package_is_that_of_the_project() -> None:
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
