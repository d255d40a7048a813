"""Traces and metrics as an OTLP receiver gets them, from programs and servers that run as processes."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import ChatServer
from tests.support.otlp_receiver import Receiver, receiving

SECRET = "zebra crossing"
PROGRAM = f"""
import conspectus
from conspectus.model.memory import Scope
with conspectus.open("data") as engine:
    engine.add(["The {SECRET} is painted on Tuesdays."], wait=True)
    window = engine.window("when is the {SECRET} painted?", 200)
    assert window.text
    engine.memory.add("The user likes the {SECRET}.", scope=Scope(user="anna"))
    try:
        engine.retrieve("{SECRET}", collection="nothing")
    except conspectus.ConspectusError:
        pass
"""
CHAT = f"""
import conspectus
from conspectus.model.chat import ChatRequest
with conspectus.open("data") as engine:
    engine.add(["The {SECRET} is painted on Tuesdays."], wait=True)
    for _ in engine.chat.stream(ChatRequest("when is the {SECRET} painted?")):
        pass
"""
REMOTE = """
import sys, conspectus
from opentelemetry import trace
with conspectus.connect(sys.argv[1]) as engine, trace.get_tracer("test").start_as_current_span("caller"):
    engine.add(["a"])
    engine.retrieve("anything")
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """What a program tells that does not ask for content."""
    with receiving() as opened:
        run(PROGRAM, tmp_path_factory.mktemp("told"), environment(opened))
        yield opened


def environment(receiver: Receiver, **variables: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CONSPECTUS", "OTEL"))}
    told = {
        "CONSPECTUS_OPENTELEMETRY": "on",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    return own | told | variables


def run(program: str, folder: Path, variables: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def serving(folder: Path, variables: dict[str, str]) -> Iterator[str]:
    script = "from conspectus.cli.entry import main; main()"
    command = [sys.executable, "-c", script, "--data-dir", "data", "serve", "--port", "0", "--no-auth"]
    server = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        yield next(line.split()[2] for line in server.stderr if "listening on" in line)
    finally:
        server.terminate()
        server.communicate(timeout=60)


def post(url: str, body: Any, **headers: str) -> Any:
    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_a_window_is_a_span_with_one_for_each_step(told: Receiver) -> None:
    window = told.named("retrieval default")[0]
    assert told.services == {"conspectus"}
    assert window.attributes["gen_ai.operation.name"] == "retrieval"
    assert window.attributes["gen_ai.data_source.id"] == "default"
    inside = [each for each in told.spans if each.trace == window.trace and each.parent]
    steps = {each.name for each in inside}
    assert {"conspectus.index_update", "conspectus.pack_and_render"} <= steps
    assert len([each for each in inside if each.name == "conspectus.index_update"]) == 1
    embedded = [each for each in inside if each.name.startswith("embeddings ")]
    assert [each.attributes["gen_ai.operation.name"] for each in embedded] == ["embeddings"]
    assert told.named("create_memory memory")
    failed = [each for each in told.spans if each.failed]
    assert {each.attributes["error.type"] for each in failed} == {"not_found"}


def test_metrics_have_operations_and_no_names(told: Receiver) -> None:
    measured = told.metrics["gen_ai.client.operation.duration"]
    assert {"retrieval", "create_memory", "embeddings"} <= {
        each["gen_ai.operation.name"] for each in measured
    }
    points = [each for all in told.metrics.values() for each in all]
    assert not {key for each in points for key in each} & {"gen_ai.data_source.id", "conspectus.collection"}


def test_texts_are_sent_only_if_asked_for(tmp_path: Path, told: Receiver, receiver: Receiver) -> None:
    assert SECRET not in repr(told.spans) + repr(told.metrics)
    run(PROGRAM, tmp_path, environment(receiver, CONSPECTUS_OPENTELEMETRY_CONTENT="on"))
    texts = [each.attributes["gen_ai.retrieval.query.text"] for each in receiver.named("retrieval default")]
    assert texts == [f"when is the {SECRET} painted?"]
    assert SECRET not in repr(receiver.metrics)


@pytest.mark.slow
async def test_a_chat_is_a_span_with_its_model_and_tokens(tmp_path: Path, receiver: Receiver) -> None:
    async with ChatServer(["On Tuesdays", " [1]."]) as server:
        variables = {"CONSPECTUS_CHAT_MODEL": "openai:small", "OPENAI_API_KEY": "none"}
        variables = environment(receiver, CONSPECTUS_CHAT_BASE_URL=server.url, **variables)
        await asyncio.to_thread(run, CHAT, tmp_path, variables)
    [span] = receiver.named("chat small")
    assert (span.kind, span.failed) == (3, False)
    assert span.attributes["gen_ai.operation.name"] == "chat"
    assert span.attributes["gen_ai.provider.name"] == "openai"
    assert span.attributes["gen_ai.request.model"] == "small"
    assert span.attributes["gen_ai.usage.output_tokens"] == 2
    used = {each["gen_ai.token.type"] for each in receiver.metrics["gen_ai.client.token.usage"]}
    assert used == {"input", "output"}
    assert SECRET not in repr(receiver.spans) + repr(receiver.metrics)


def test_without_the_setting_nothing_is_loaded_or_sent(tmp_path: Path, receiver: Receiver) -> None:
    checked = (
        f"{PROGRAM}\nimport sys\nassert not [n for n in sys.modules if n.startswith('opentelemetry.sdk')]"
    )
    run(checked, tmp_path, environment(receiver, CONSPECTUS_OPENTELEMETRY="off"))
    assert (receiver.spans, receiver.metrics) == ([], {})


def test_a_trace_goes_on_over_http_mcp_and_jobs(tmp_path: Path, receiver: Receiver) -> None:
    call = {"name": "search", "arguments": {"query": "anything"}, "_meta": {"traceparent": PARENT}}
    with serving(tmp_path, environment(receiver)) as address:
        place = f"{address}/api/v1/collections"
        post(place, {"name": "default"})
        post(f"{place}/default/documents", {"documents": [{"text": "a"}]})
        post(f"{address}/api/v1/search", {"query": "anything"}, traceparent=PARENT)
        post(f"{address}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        post(f"{place}/default/ingest/url", {"url": "http://127.0.0.1:9/"}, traceparent=PARENT)
        receiver.until(lambda: receiver.named("conspectus.job ingest_url"))
        receiver.until(lambda: len(retrievals(receiver)) >= 2)
    assert {each.trace for each in retrievals(receiver)} == {TRACE}
    [job] = receiver.named("conspectus.job ingest_url")
    assert (job.trace, job.kind) == (TRACE, 5)


def retrievals(receiver: Receiver) -> list[Any]:
    return [each for each in receiver.spans if each.attributes.get("gen_ai.operation.name") == "retrieval"]


@pytest.mark.slow
def test_a_client_names_the_trace_of_its_caller(tmp_path: Path, receiver: Receiver) -> None:
    variables = environment(receiver)
    with serving(tmp_path, variables) as address:
        run(REMOTE, tmp_path, variables, address)
        receiver.until(lambda: receiver.named("retrieval default"))
    [caller] = receiver.named("caller")
    assert {each.trace for each in receiver.named("retrieval default")} == {caller.trace}
