"""The chat of the examples, run as a process, and run again: it remembers."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.chat_server import ChatServer

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "agent_chat.py"


def chat(folder: Path, name: str, *lines: str, **environment: str) -> list[str]:
    """What a chat answers, line by line."""
    done = subprocess.run(
        [sys.executable, "-W", "error", PROGRAM, folder / "memory", name],
        input="\n".join(lines) + "\n",
        env={"PATH": "", "CONSPECTUS_EMBEDDER": "none", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


def test_what_was_said_is_known_in_the_next_run(tmp_path: Path) -> None:
    first = chat(tmp_path, "ada", "My sister Mona lives in Lyon.", "/note Call me Captain.")
    assert first == [
        "I remember 0 things that were said.",
        "I remember nothing of that. I shall remember what you said.",
        "Noted.",
    ]
    count, sister, gone, nothing = chat(
        tmp_path, "ada", "Where does my sister live?", "/forget My sister Mona lives in Lyon.", "/forget"
    )
    assert count == "I remember 2 things that were said."
    assert "Mona lives in Lyon" in sister
    assert gone == "Forgotten: My sister Mona lives in Lyon."
    assert nothing == "There is nothing of that."
    again = chat(tmp_path, "ada", "Tell me about Mona in Lyon.")[1]
    assert "Mona lives in Lyon" not in again
    assert chat(tmp_path, "bob", "Where does my sister live?")[1].startswith("I remember nothing")


def test_a_note_of_nothing_is_asked_for(tmp_path: Path) -> None:
    assert chat(tmp_path, "ada", "/note", "/note  ")[1:] == ["What? Say it as /note TEXT."] * 2


@pytest.mark.slow
async def test_a_model_is_given_what_is_remembered(tmp_path: Path) -> None:
    chat(tmp_path, "ada", "My sister Mona lives in Lyon.")
    async with ChatServer(["In", " Lyon."]) as server:
        output = await asyncio.to_thread(
            chat,
            tmp_path,
            "ada",
            "Where does my sister live?",
            "And Mona?",
            CONSPECTUS_CHAT_MODEL="openai:small",
            CONSPECTUS_CHAT_BASE_URL=server.url,
            OPENAI_API_KEY="none",
        )
    assert output[1:] == ["In Lyon.", "In Lyon."]
    assert "Mona lives in Lyon" in str(server.calls[0].body["messages"])
    roles = [message["role"] for message in server.calls[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert server.calls[1].body["messages"][1]["content"] == "Where does my sister live?"
