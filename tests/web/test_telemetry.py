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
def received(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """What a program tells that does not ask for content."""
    with receiving() as opened:
        run_program(PROGRAM, tmp_path_factory.mktemp("told"), environment(opened))
        yield opened


def environment(receiver: Receiver, **variables: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("CONSPECTUS", "OTEL"))
    }
    telemetry = {
        "CONSPECTUS_OPENTELEMETRY": "on",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    return inherited | telemetry | variables


def run_program(program: str, folder: Path, variables: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def running_server(folder: Path, variables: dict[str, str]) -> Iterator[str]:
    script = "from conspectus.cli.entry import main; main()"
    command = [sys.executable, "-c", script, "--data-dir", "data", "serve", "--port", "0", "--no-auth"]
    server = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        yield next(line.split()[2] for line in server.stderr if "listening on" in line)
    finally:
        server.terminate()
        server.communicate(timeout=60)


def post_json(url: str, body: Any, **headers: str) -> Any:
    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_a_window_is_a_span_with_one_for_each_step(received: Receiver) -> None:
    window = received.named("retrieval default")[0]
    assert received.services == {"conspectus"}
    assert window.attributes["gen_ai.operation.name"] == "retrieval"
    assert window.attributes["gen_ai.data_source.id"] == "default"
    inside = [span for span in received.spans if span.trace == window.trace and span.parent]
    steps = {span.name for span in inside}
    assert {"conspectus.index_update", "conspectus.pack_and_render"} <= steps
    assert len([span for span in inside if span.name == "conspectus.index_update"]) == 1
    embedded = [span for span in inside if span.name.startswith("embeddings ")]
    assert [span.attributes["gen_ai.operation.name"] for span in embedded] == ["embeddings"]
    assert received.named("create_memory memory")
    failed = [span for span in received.spans if span.failed]
    assert {span.attributes["error.type"] for span in failed} == {"not_found"}


def test_metrics_have_operations_and_no_names(received: Receiver) -> None:
    measured = received.metrics["gen_ai.client.operation.duration"]
    assert {"retrieval", "create_memory", "embeddings"} <= {
        point["gen_ai.operation.name"] for point in measured
    }
    points = [point for all in received.metrics.values() for point in all]
    assert not {key for point in points for key in point} & {"gen_ai.data_source.id", "conspectus.collection"}


def test_texts_are_sent_only_if_asked_for(tmp_path: Path, received: Receiver, receiver: Receiver) -> None:
    assert SECRET not in repr(received.spans) + repr(received.metrics)
    run_program(PROGRAM, tmp_path, environment(receiver, CONSPECTUS_OPENTELEMETRY_CONTENT="on"))
    texts = [span.attributes["gen_ai.retrieval.query.text"] for span in receiver.named("retrieval default")]
    assert texts == [f"when is the {SECRET} painted?"]
    assert SECRET not in repr(receiver.metrics)


@pytest.mark.slow
async def test_a_chat_is_a_span_with_its_model_and_tokens(tmp_path: Path, receiver: Receiver) -> None:
    async with ChatServer(["On Tuesdays", " [1]."]) as server:
        variables = {"CONSPECTUS_CHAT_MODEL": "openai:small", "OPENAI_API_KEY": "none"}
        variables = environment(receiver, CONSPECTUS_CHAT_BASE_URL=server.url, **variables)
        await asyncio.to_thread(run_program, CHAT, tmp_path, variables)
    [span] = receiver.named("chat small")
    assert (span.kind, span.failed) == (3, False)
    assert span.attributes["gen_ai.operation.name"] == "chat"
    assert span.attributes["gen_ai.provider.name"] == "openai"
    assert span.attributes["gen_ai.request.model"] == "small"
    assert span.attributes["gen_ai.usage.output_tokens"] == 2
    used = {point["gen_ai.token.type"] for point in receiver.metrics["gen_ai.client.token.usage"]}
    assert used == {"input", "output"}
    assert SECRET not in repr(receiver.spans) + repr(receiver.metrics)


def test_without_the_setting_nothing_is_loaded_or_sent(tmp_path: Path, receiver: Receiver) -> None:
    checked = (
        f"{PROGRAM}\nimport sys\nassert not [n for n in sys.modules if n.startswith('opentelemetry.sdk')]"
    )
    run_program(checked, tmp_path, environment(receiver, CONSPECTUS_OPENTELEMETRY="off"))
    assert (receiver.spans, receiver.metrics) == ([], {})


def test_a_trace_goes_on_over_http_mcp_and_jobs(tmp_path: Path, receiver: Receiver) -> None:
    call = {"name": "search", "arguments": {"query": "anything"}, "_meta": {"traceparent": PARENT}}
    with running_server(tmp_path, environment(receiver)) as address:
        collections_url = f"{address}/api/v1/collections"
        post_json(collections_url, {"name": "default"})
        post_json(f"{collections_url}/default/documents", {"documents": [{"text": "a"}]})
        post_json(f"{address}/api/v1/search", {"query": "anything"}, traceparent=PARENT)
        post_json(f"{address}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        post_json(f"{collections_url}/default/ingest/url", {"url": "http://127.0.0.1:9/"}, traceparent=PARENT)
        receiver.until(lambda: receiver.named("conspectus.job ingest_url"))
        receiver.until(lambda: len(retrievals(receiver)) >= 2)
    assert {span.trace for span in retrievals(receiver)} == {TRACE}
    [job] = receiver.named("conspectus.job ingest_url")
    assert (job.trace, job.kind) == (TRACE, 5)


def retrievals(receiver: Receiver) -> list[Any]:
    return [span for span in receiver.spans if span.attributes.get("gen_ai.operation.name") == "retrieval"]


@pytest.mark.slow
def test_a_client_names_the_trace_of_its_caller(tmp_path: Path, receiver: Receiver) -> None:
    variables = environment(receiver)
    with running_server(tmp_path, variables) as address:
        run_program(REMOTE, tmp_path, variables, address)
        receiver.until(lambda: receiver.named("retrieval default"))
    [caller] = receiver.named("caller")
    assert {span.trace for span in receiver.named("retrieval default")} == {caller.trace}
