"""Every Python program of docs/agents.md runs as it stands."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from conspectus.testing.web_server import Answer, ScriptedServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agents.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
MESSAGE = {"role": "assistant", "content": "We were talking about the meeting."}
SAID = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def test_the_page_has_a_program_for_each_library() -> None:
    assert [re.findall(r"conspectus\.faces\.(\w+)", each)[-1] for each in PROGRAMS] == [
        "langchain",
        "llama_index",
        "openai_agents",
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
async def test_programs_of_the_page_run(program: str, tmp_path: Path) -> None:
    answer = Answer(json.dumps(SAID).encode(), type="application/json")
    async with ScriptedServer({"/v1/chat/completions": answer}) as server:
        settings = {**os.environ, "OPENAI_BASE_URL": f"{server.base}/v1", "OPENAI_API_KEY": "none"}
        ran = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=tmp_path, env=settings,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, complained = await ran.communicate()
    assert ran.returncode == 0, complained.decode()
    assert "meeting" in said.decode()
