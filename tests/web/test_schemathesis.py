"""Requests made up from the OpenAPI document: no server error, and no answer that it does not describe.

What the document allows is accepted, what it forbids is refused, and a method that it does not name is a 405.
Most requests name things that exist, as made-up names hardly ever lead anywhere.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.transport import Response
from schemathesis.generation.meta import CoveragePhaseData, CoverageScenario
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from tests.repetitions import tries
from tests.web.conftest import Live

# The server draws its own random numbers in another thread of this process.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
EXAMPLES = tries(10)
FORBIDDEN = tries(20)
"""Requests against the document, for each operation."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
REFUSALS = ["400", "404", "409", "413", "415", "422", "431"]
"""Some are refused before the value is looked at: an unknown name, a used key, a large head."""
ALLOWED = ["2xx", "3xx", "404", "409", "412", "503"]
"""What is well formed may still name what is not there, be in conflict, or have an `If-Match` that is old."""
RULES = {
    "after": "a page gives it",
    "Last-Event-ID": "an event has it",
    "filter": "a language of its own",
    "path": "names a collection, a source and a key",
    "pattern": "a regular expression",
    "schema": "JSON in a parameter",
    "tokenizer": "a name that is installed",
    "profile": "a name that the settings have",
    "embedder": "a name that is installed",
    "connector": "a name that is installed",
    "time_zone": "a name in the database of time zones",
    "dimensions": "those of the model",
    "vector": "finite and not zero, in the space of the collection",
    "limit": "bounded by the settings",
    "candidates": "bounded by the settings",
    "chunks": "bounded by the settings",
    "max_tokens": "bounded by the settings",
    "thread_messages": "bounded by the settings",
    "hops": "bounded by the settings",
    "offset": "bounded by the settings",
    "min_weight": "0 to 1, as the engine says",
    "min_score": "0 to 1, as the engine says",
    "history": "bounded by the settings",
    "message": "fits its share of the budget",
    "instructions": "fits its share of the budget",
    "thread": "needs its channel",
    "start": "needs or bounds its end",
    "end": "is after its start",
    "overlap": "is bounded by the size",
    "expires": "is to come",
    "ids": "one of four fields",
    "days": "one of two fields",
    "name": "has visible characters",
    "id": "has visible characters",
    "channel": "has visible characters",
    "store_in": "has visible characters",
    "agent": "has characters that can be stored",
    "conversation": "has characters that can be stored",
    "text": "an attachment needs it or a title",
    "places": "are in the text",
    "spans": "cover the text",
    "options": "are those of the connector",
    "extractive": "needs no model",
    "messages": "are in an order that models take",
    "content": "is text",
    "tool_call_id": "answers an earlier message",
    "function_call": "is known, and refused in favor of tool_calls",
    "file": "is an export",
    "files": "have different names",
    "kind": "a form has no null",
    "method": "is read in any case",
    "url": "leads somewhere",
    "webhook": "leads somewhere",
    "graph": "is looked up by its bytes in UTF-8",
    "user": "has visible characters, and no slash",
    "group": "has visible characters, and no slash",
    "type": "has visible characters",
    "types": "have visible characters",
    "collection": "has visible characters",
    "node": "has visible characters",
    "fact": "its ends have visible characters",
    "title": "has a visible character",
    "label": "has visible characters",
    "tags": "have visible characters",
    "last": "-1, or an index",
    "query": "has a visible character",
    "used": "names chunks, or `wrong` does",
    "wrong": "has none of the chunks that were used",
    "occurred": "dates in their order",
    "metadata": "has none of the names that tasks use",
    "source": "has visible characters",
    "target": "has visible characters",
    "at": "a date",
    "valid_from": "a date",
    "valid_until": "a date",
    "start_time": "a date",
    "line": "is JSON",
}
"""Fields with a rule that a schema cannot say: to refuse one of them is no contradiction to the document."""
SLASHED = re.compile(r"\{(collection|graph|stream|task)\}/")
"""Below a name that may hold a slash, what follows can be part of a name, which is not there (404)."""
NUL = "holds a NUL, which cannot be stored"
"""Whatever field has it, the database refuses it."""
WHOLE = "Input should be a valid integer"
"""To JSON Schema, 6.0 is an integer; here one is written without a fraction."""
UNSURE = {
    "POST /api/v1/collections/{collection}/connections",
    "POST /api/v1/collections/{collection}/connections/{name}/sync",
    "POST /api/v1/collections/{collection}/ingest/url",
    "POST /api/v1/collections/{collection}/reembed",
    "DELETE /api/v1/collections/{collection}/connections/{name}",
    "POST /api/v1/collections/{collection}/documents/delete",
    "DELETE /api/v1/collections/{collection}/grants",
    "PUT /api/v1/collections/{collection}/grants",
    "GET /api/v1/chat/{stream}",
    "POST /api/v1/chat/completions",
    "POST /api/v1/messages/import",
    "GET /api/v1/jobs/{job}",
    "POST /api/v1/jobs/{job}/cancel",
    "POST /api/v1/jobs/{job}/retry",
    "POST /api/v1/graphs/{graph}/undo-merge",
    "POST /api/v1/keys/{key}/rotate",
    "POST /api/v1/sources/{source}/documents",
    "PUT /api/v1/tasks/{task}/attachments/{attachment}",
}
"""What made-up requests need not succeed with: they need what only happens, or names that mean something."""


SESSION = "/api/v1/session"
"""A login needs a key that is valid, which none that is made up is."""
CHANNELS = ("/api/v1/messages", "/api/v1/documents/by-key")
STREAMS = ("/api/v1/streams", "/api/v1/alerts")
CONNECTED = ("/api/v1/memories", "/api/v1/graphs", "/api/v1/collections/{collection}/entities")
MEMORIES = [{"text": "I like green tea.", "key": "1"}]
SCENES = [{"text": "A red car stops.", "start": 0, "end": 9, "index": 0, "entities": ["car"]}]
TALK = [{"text": "How do I reset it?", "key": "1"}, {"text": "Hold the button.", "key": "2", "reply_to": "1"}]


def in_a_channel(case: Case) -> None:
    """Let a request ask for what is there: a channel, one of its messages, the collection it is in."""
    if isinstance(case.query, dict):
        values = {"channel": "support", "source": "support", "key": "1", "collection": "default"}
        case.query.update({name: values[name] for name in case.query if name in values})
    if isinstance(case.body, dict) and "channel" in case.body:
        case.body.update({"channel": "support", "collection": "default"})


def in_a_stream(case: Case) -> None:
    """Let a request ask for a stream that is there, mostly for all of it."""
    if isinstance(case.query, dict):
        values = {"collection": "default", "start": "0", "end": "0:30", "first": "0", "last": "-1"}
        case.query.update({name: values[name] for name in case.query if name in values})
        case.query.pop("after", None)
    if isinstance(case.headers, dict):
        case.headers.pop("Last-Event-ID", None)
    if isinstance(case.body, dict):
        known_parts = {
            "collection": "default",
            "streams": [],
            "filter": None,
            "range": None,
            "schema": None,
        }
        case.body.update({name: known_parts[name] for name in case.body if name in known_parts})


NEEDED = {"/memories/retention": {"max_count": 3}, "/memories/forget": {"everything": True, "ids": []}}
"""What these bodies must have, which the schema cannot say."""
READ = "/api/v1/files/text"
JUDGE = "/api/v1/feedback"
RELEASE = "/api/v1/documents/{document}/release"


def of_a_document(case: Case, names: dict[str, str]) -> None:
    """Let a request read, judge or release a document that is there."""
    if case.path == READ:
        case.query = {"path": "/default/default/k"}
    if case.path == JUDGE and case.method == "POST":
        case.body = {"query": "backups", "used": [int(names["chunk"])]}
    if case.path == RELEASE:
        case.path_parameters = {"document": names["quarantined"]}


def add_feedback(client: httpx.Client, document: str) -> dict[str, str]:
    """A chunk with feedback, and a quarantined document."""
    chunk = client.get(f"/documents/{document}/chunks").json()[0]["id"]
    feedback = client.post("/feedback", json={"query": "backups", "used": [chunk]}).json()
    attack = [{"text": "A note.", "key": "q", "trust": "quarantined"}]
    quarantined = client.post("/collections/default/documents", json={"documents": attack}).json()
    return {"chunk": chunk, "feedback": feedback[0]["id"], "quarantined": quarantined[0]["id"]}


UNNAMED = ("agent", "conversation", "after", "tokenizer", "source", "limit", "offset", "filter")


def in_a_memory(case: Case) -> None:
    """Let a request ask for memories and a graph that are there."""
    values = {"user": "ann", "collection": "memory", "node": "ann", "at": "2026-01-01T00:00:00Z", "hops": "1"}
    if "/memories" not in case.path:
        values["collection"] = "default"
    if isinstance(case.query, dict):
        for name in UNNAMED:
            case.query.pop(name, None)
        case.query.update({name: values[name] for name in case.query if name in values})
    if "{memory}" in case.path:
        case.query = {**(case.query or {}), "user": "ann", "collection": "memory"}
    if isinstance(case.body, dict):
        parts: dict[str, object] = {**values, **dict.fromkeys(("agent", "conversation", "scope", "filter"))}
        nodes = ["bo"] if "into" in case.body else []
        parts |= {"into": "ann", "edges": [], "nodes": nodes, "memories": MEMORIES}
        parts |= {"everything": True, "ids": [], "before": None, "older_than_days": None, "mention": None}
        parts |= {"as_of": None, "graph": None, "limit": 3, "days": None, "max_count": 3, "lines": []}
        parts |= {"text": "I like green tea.", "query": "tea", "at": None, "fact": None}
        parts |= {"vector": None, "metadata": {}}
        parts |= {"valid_from": None, "valid_until": None, "role": None, "speaker": None, "kind": "note"}
        case.body.update({name: parts[name] for name in case.body if name in parts})
        case.body.update(NEEDED.get(case.path.removeprefix("/api/v1"), {}))
    if isinstance(case.headers, dict):
        case.headers.pop("If-Match", None)


@dataclass(frozen=True)
class Described:
    """A server, its document, and a key for it."""

    live: Live
    schema: schemathesis.BaseSchema
    key: str

    def known(self) -> dict[str, str]:
        """Names of things that exist, made again where a request deleted them."""
        with self.live.client() as client:
            client.headers["Authorization"] = f"Bearer {self.key}"
            client.post("/collections", json={"name": "default", "get": True})
            documents = [{"text": "Backups run at two.", "key": "k"}]
            added = client.post("/collections/default/documents", json={"documents": documents}).json()
            client.post("/users", json={"name": "alice"})
            client.post("/groups", json={"name": "team"})
            source = client.get("/collections/default/sources").json()[0]["id"]
            key = client.post("/keys", json={"user": "alice"}).json()["key"]["id"]
            client.put("/tasks/login", json={"title": "Fix login"})
            client.put("/tasks/login/attachments/log", json={"text": "Wrong password."})
            client.post("/messages", json={"channel": "support", "messages": TALK})
            client.post("/streams/gate/captions", json={"captions": SCENES, "replace": True})
            memories = client.post("/memories", json={"user": "ann", "memories": MEMORIES}).json()
            nodes = [{"id": "ann"}, {"id": "bo"}]
            client.post("/graphs/default/nodes", json={"nodes": nodes})
            alert = client.post("/alerts", json={"name": "cars", "query": "car"}).json()["id"]
            judged = add_feedback(client, added[0]["id"])
        names = {"collection": "default", "user": "alice", "group": "team", "source": source, "key": key}
        return names | {
            "document": added[0]["id"],
            "task": "login",
            "attachment": "log",
            "stream": "gate",
            "alert": alert,
            "memory": memories[0]["id"],
            "graph": "default",
            **judged,
        }

    def faults(self) -> list[str]:
        """What the log says of faults of the server itself."""
        return [line for line in self.live.log.getvalue().splitlines() if '"request_failed"' in line]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    folder: Path = tmp_path_factory.mktemp("store")
    settings = Settings(embedder="none", job_grace_seconds=1, subscription_seconds=1)
    with Live(folder, settings, chat_model=ScriptedChatModel()) as live:
        document = httpx.get(f"{live.address}/openapi.json", timeout=60).json()
        schema = schemathesis.openapi.from_dict(document)
        schema.config.update(base_url=live.address)
        schema.config.generation.update(with_security_parameters=False)
        schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
        schema.config.checks.positive_data_acceptance.expected_statuses = ALLOWED
        with live.client() as client:
            key = client.post("/keys", json={}).json()["secret"]
        yield Described(live, schema.exclude(path=SESSION), key)


def failures(operation: APIOperation, of: Described, names: dict[str, str], seen: Counter[str]) -> list[str]:
    """What is wrong with the answers to requests made up for one operation, about what is there by name."""
    wrong = list[str]()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(), st.sampled_from((True, True, True, False)))
    def ask(case: Case, real: bool) -> None:
        if real:
            given_names = case.path_parameters or {}
            case.path_parameters = {name: names.get(name, value) for name, value in given_names.items()}
            if operation.path.startswith(CHANNELS):
                in_a_channel(case)
            if operation.path.startswith(STREAMS):
                in_a_stream(case)
            if operation.path.startswith(CONNECTED):
                in_a_memory(case)
            of_a_document(case, names)
        response = case.call(headers={"Authorization": f"Bearer {of.key}"}, timeout=60)
        seen[operation.label] += response.status_code < 400
        wrong.extend(blamed_wrongly(operation, response))
        ruled = rule_at(response) in RULES or WHOLE in response.text
        try:
            case.validate_response(response, checks=CHECKS if ruled else [*CHECKS, positive_data_acceptance])
        except FailureGroup as group:
            wrong.extend(describe_failures(operation, group, response))

    ask()
    return wrong


def parameters(operation: APIOperation) -> set[str]:
    """The names of all fields that a request can have."""
    raw, document = operation.definition.raw, operation.schema.raw_schema
    names = {parameter["name"] for parameter in raw.get("parameters", ())}
    left, seen = [raw.get("requestBody", {})], set[str]()
    while left:
        part = left.pop()
        if "$ref" in part and part["$ref"] not in seen:
            seen.add(part["$ref"])
            left.append(document["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]])
        names |= part.get("properties", {}).keys() if isinstance(part.get("properties"), dict) else set()
        for member in part.values():
            left += [
                one for one in (member if isinstance(member, list) else [member]) if isinstance(one, dict)
            ]
    return names


def blamed_wrongly(operation: APIOperation, response: Response) -> list[str]:
    """A refusal that blames a field which no such request has."""
    if response.status_code != 422 or NUL in response.text:
        return []
    field = str(response.json().get("field") or "")
    names = {*parameters(operation), "line"}
    is_known = not field or re.split(r"[. ]", field)[0] in names
    return [] if is_known else [f"{operation.label}: no request has the field {field!r}"]


def describe_failures(operation: APIOperation, group: FailureGroup, response: Response) -> list[str]:
    answer = f"{response.status_code} {response.text[:300]}"
    return [f"{operation.label}: {fault}: {answer}" for fault in group.exceptions]


def rule_at(response: Response) -> str:
    """The last name of the field that a refusal blames."""
    if response.status_code < 400:
        return ""
    problem = response.json()
    field = problem.get("field") or problem.get("path") or problem.get("error", {}).get("param") or ""
    return str(re.sub(r"([. ]\d+)+$", "", field).rsplit(".", 1)[-1])


def forbidden(operation: APIOperation) -> Sequence[Case]:
    """Requests that the document forbids: some of those with a wrong value, and all with another method."""
    cases = operation.schema.iter_coverage_cases(
        operation,
        generation_modes=[GenerationMode.NEGATIVE],
        generation_config=operation.schema.config.generation,
        extra_data_source=None,
        error_feedback=None,
        session=None,
    )
    methods, values = [], []
    for case in cases:
        (methods if has_other_method(case) else values).append(case)
    return methods + values[:: len(values) // FORBIDDEN + 1]


def has_other_method(case: Case) -> bool:
    data = case.meta and case.meta.phase.data
    return isinstance(data, CoveragePhaseData) and data.scenario == CoverageScenario.UNSPECIFIED_HTTP_METHOD


def accepted(case: Case, of: Described, names: dict[str, str]) -> list[str]:
    """What is wrong with the answer to a request that the document forbids."""
    assert case.meta is not None
    method = has_other_method(case)
    if method or not case.meta.is_negative_at(ParameterLocation.PATH):
        given_names = case.path_parameters or {}
        case.path_parameters = {name: names.get(name, value) for name, value in given_names.items()}
    response = case.call(headers={"Authorization": f"Bearer {of.key}"}, timeout=60)
    checks = [*CHECKS, negative_data_rejection]
    if method:
        below_a_name = SLASHED.search(case.operation.path) and response.status_code in {404, 422}
        checks = [] if below_a_name or response.status_code == 431 else [unsupported_method]
    try:
        case.validate_response(response, checks=checks) if checks else None
    except FailureGroup as group:
        return describe_failures(case.operation, group, response)
    return []


@pytest.mark.slow
def test_every_answer_is_described(described: Described) -> None:
    operations = [loaded.ok() for loaded in described.schema.get_all_operations()]
    seen: Counter[str] = Counter()
    wrong, names = list[str](), described.known()
    for operation in operations:
        wrong += failures(operation, described, names, seen)
        if operation.method.upper() != "GET":
            names = described.known()
    assert (wrong, described.faults()) == ([], [])
    assert {operation.label for operation in operations if not seen[operation.label]} <= UNSURE


def test_what_the_document_forbids_is_refused(described: Described) -> None:
    names = described.known()
    wrong = []
    for loaded in described.schema.get_all_operations():
        for case in forbidden(loaded.ok()):
            if case.media_type != "application/x-ndjson":
                wrong += accepted(case, described, names)
    assert (wrong, described.faults()) == ([], [])
