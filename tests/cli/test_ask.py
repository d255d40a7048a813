"""`conspectus ask`: with a vendor's model, without one, and over a server."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, Shell
from tests.support.chat_server import ChatServer, Says, refusing, stumbling
from tests.web.test_serve import running_server

QUESTION = "when does the backup run"


@contextmanager
def running_chat_server(says: Says) -> Iterator[ChatServer]:
    """A vendor in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = ChatServer(says)
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with running_chat_server(["The backup runs", " at two [1].\n", "See also [7]."]) as server:
        yield server


def chat_settings(model: ChatServer) -> dict[str, str]:
    chat = {"CONSPECTUS_CHAT_MODEL": "openai:small", "CONSPECTUS_CHAT_BASE_URL": model.url}
    return {**chat, "OPENAI_API_KEY": "sk-hunter2"}


def run_ask(shell: Shell, model: ChatServer, *arguments: str) -> Outcome:
    return shell("ask", *arguments, **chat_settings(model))


def test_the_answer_with_its_sources(filled: Shell, model: ChatServer) -> None:
    done = run_ask(filled, model, QUESTION)
    assert done.code == 0
    assert done.out.startswith("The backup runs at two [1].\nSee also [7].\n")
    assert "[1]  Backups" in done.out
    assert "the answer cites [7], which is not in the context" in done.err
    assert "every night at two" in model.calls[0].body["messages"][-1]["content"]


def test_the_answer_as_json(filled: Shell, model: ChatServer) -> None:
    done = run_ask(filled, model, QUESTION, "--json")
    assert done.code == 0
    answer = done.json
    assert answer["answer"] == "The backup runs at two [1].\nSee also [7]."
    assert [citation["number"] for citation in answer["citations"]["cited"]] == [1]
    assert answer["citations"]["unknown"] == ["7"]
    assert (answer["sources"]["outcome"], answer["usage"]["output"]) == ("found", 3)


def test_what_may_be_looked_at_and_how_much_it_may_cost(filled: Shell, model: ChatServer) -> None:
    tickets = ["--filter", "metadata.state=open"]
    assert run_ask(filled, model, "printers", *tickets).code == 0
    prompt = model.calls[0].body["messages"][-1]["content"]
    assert ("ticket 1" in prompt, "ticket 2" in prompt) == (True, False)
    run_ask(filled, model, "printers", "--max-tokens", "1", "--max-answer-tokens", "2")
    assert "ticket" not in str(model.calls[1].body)
    assert 2 in (model.calls[1].body.get(name) for name in ("max_tokens", "max_completion_tokens"))
    run_ask(filled, model, "printers", "--no-context")
    assert model.calls[2].body["messages"][-1]["content"] == "printers"


def test_all_collections_can_be_asked_at_once(filled: Shell, model: ChatServer, notes: Path) -> None:
    filled("add", notes / "backups.md", "--collection", "other")
    for where in ([], ["--filter", "kind=page"]):
        done = run_ask(filled, model, QUESTION, "--collection", "*", *where)
        assert (done.code, done.err.count("error")) == (0, 0)
        assert "every night at two" in model.calls[-1].body["messages"][-1]["content"]


def test_an_answer_that_cites_nothing_says_so(filled: Shell) -> None:
    with running_chat_server(["I do not know."]) as model:
        done = run_ask(filled, model, QUESTION)
    assert (done.code, done.out) == (0, "I do not know.\n")
    assert "the answer cites no source of 1" in done.err


def test_what_a_model_says_cannot_steer_a_terminal_through_a_source(filled: Shell, tmp_path: Path) -> None:
    filled("add", "-", typed="The \x1b[2J\u202e backup lies")
    with running_chat_server(["All [1] [2] [3]."]) as model:
        done = run_ask(filled, model, "backup lies")
    table = done.out.partition("\n\n")[2]
    assert ("lies" in table, "\x1b" in table, "\u202e" in table) == (True, False, False)


def test_without_a_model_the_passages_are_shown(filled: Shell) -> None:
    done = filled("ask", QUESTION)
    assert done.code == 0
    assert "every night at two" in done.out
    assert "[1]" in done.out
    assert "CONSPECTUS_CHAT_MODEL is not set" in done.err
    printed = filled("ask", QUESTION, "--json")
    assert (printed.json["answer"], "every night at two" in printed.json["passages"]) == (None, True)
    assert filled("ask", QUESTION, "--no-context").code == 1
    assert filled("ask", "zymurgy", "--filter", "kind=task").code == 3


@pytest.mark.parametrize(
    ("fault", "code", "exit_code"),
    [
        (refusing(401, message="sk-hunter2"), "LLM_AUTH_FAILED", 1),
        (refusing(429), "LLM_RATE_LIMIT", 6),
        (stumbling("cut", after=1), "LLM_CONNECTION_ERROR", 6),
    ],
)
def test_what_a_model_fails_with(
    filled: Shell, model: ChatServer, fault: object, code: str, exit_code: int
) -> None:
    model.plan.extend([fault, fault])
    done = run_ask(filled, model, QUESTION, "--json")
    assert (done.code, done.json["error"]["code"]) == (exit_code, code)
    done = run_ask(filled, model, QUESTION)
    assert (done.code, "error: " in done.err, "hunter2" in done.err + done.out) == (exit_code, True, False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([""], 2), ([" "], 2), (["x" * 10_001], 2), (["x", "--max-tokens", "100001"], 2),
     (["x", "--max-answer-tokens", "0"], 2), (["x", "--collection", "nowhere"], 3),
     (["x", "--filter", "nonsense"], 2)],
)  # fmt: skip
def test_what_is_asked_wrongly(filled: Shell, model: ChatServer, arguments: list[str], code: int) -> None:
    done = run_ask(filled, model, *arguments)
    assert (done.code, done.out, bool(done.err), model.calls) == (code, "", True, [])


def test_over_a_server(filled: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    chat = {"chat_model": "openai:small", "chat_base_url": model.url}
    with running_server(filled.folder, "--no-auth", **chat) as process:
        done = filled("ask", QUESTION, "--url", process.address)
        process.end()
    assert (done.code, done.out.startswith("The backup runs at two [1].\n")) == (0, True)
    assert "[1]  Backups" in done.out
    with running_server(filled.folder, "--no-auth") as process:
        done = filled("ask", QUESTION, "--url", process.address)
        process.end()
    assert (done.code, "every night at two" in done.out) == (0, True)
    assert "CONSPECTUS_CHAT_MODEL is not set" in done.err
