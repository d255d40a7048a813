"""Errors as answers: every class has a status, nothing internal gets out."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from conspectus import errors
from conspectus.errors import ConspectusError
from conspectus.web.problem_details import RESERVED, STATUSES, Problem, problem_of, status_of
from tests.web.conftest import Site

SECRET = "the-password-of-somebody"


def walk_subclasses(kind: type[ConspectusError]) -> Iterator[type[ConspectusError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from walk_subclasses(subclass)


SAMPLES: list[tuple[ConspectusError, int]] = [
    (errors.InvalidInput("limit", "is too high"), 422),
    (errors.UnknownTokenizer("x"), 422),
    (errors.TooLarge("text", size=2, limit=1), 413),
    (errors.NotFound("collection", "wiki"), 404),
    (errors.Unauthenticated(), 401),
    (errors.PermissionDenied("write", "the role editor"), 403),
    (errors.Conflict("collection", "wiki", "exists already"), 409),
    (errors.PreconditionFailed("document", "d"), 412),
    (errors.UnreadableFile("a.pdf", "is broken"), 422),
    (errors.UnsupportedContent("a.png", "is a picture"), 415),
    (errors.FetchFailed("https://example.org", "404", status=404), 502),
    (errors.ForbiddenAddress("http://localhost"), 422),
    (errors.Overloaded("too much", retry_after=1.2), 503),
    (errors.MissingExtra("cohere", "cohere"), 501),
    (errors.ProviderError("cohere", "refused", status=400), 502),
    (errors.ProviderUnavailable("cohere", "is away", retry_after=3), 503),
    (errors.StorageBusy("held by another process"), 503),
    (errors.WriteOutcomeUnknown("lost"), 503),
    (errors.IndexDamaged("/srv/secret/place", "is torn"), 500),
    (errors.StorageTooNew("/srv/secret/place", "9"), 500),
]


@pytest.mark.parametrize(("error", "status"), SAMPLES, ids=lambda value: type(value).__name__)
def test_the_status_and_the_document_of_an_error(error: ConspectusError, status: int) -> None:
    answer = problem_of(error).response()
    document = json.loads(bytes(answer.body))
    assert answer.status_code == document["status"] == status
    assert answer.media_type == "application/problem+json"
    assert {"type", "title", "status", "detail", "code"} <= document.keys()
    assert (document["code"], document["type"]) == (error.code, "about:blank")
    assert "/srv/secret" not in str(document)


def test_every_class_of_error_has_a_status() -> None:
    assert {
        kind for kind in walk_subclasses(ConspectusError) if status_of(kind) not in range(400, 600)
    } == set()
    assert set(STATUSES) <= set(walk_subclasses(ConspectusError))


def test_waiting_times_are_whole_seconds_and_never_too_short() -> None:
    assert problem_of(errors.Overloaded("x", retry_after=1.2)).headers["Retry-After"] == "2"
    assert "Retry-After" not in problem_of(errors.ProviderUnavailable("x", "y")).headers


def test_a_fact_never_takes_the_place_of_a_member() -> None:
    document = problem_of(errors.FetchFailed("https://x.org", "no", status=404)).document()
    assert (document["status"], document["upstream_status"]) == (502, 404)
    assert all(f"upstream_{name}" not in document for name in RESERVED - {"status"})


def test_a_document_is_utf8_whatever_it_holds() -> None:
    answer = Problem(404, "not_found", "no \ud800 here", {"name": "\udfff"}).response()
    assert json.loads(bytes(answer.body))["name"] == "?"


def with_route(app: FastAPI, fault: BaseException) -> None:
    async def fail() -> None:
        raise fault

    app.add_api_route("/api/v1/fail", fail)


@pytest.mark.parametrize("fault", [ValueError(SECRET), KeyError(SECRET), RecursionError(SECRET)])
async def test_an_unknown_fault_says_nothing_and_is_logged(
    site: Site, api: httpx.AsyncClient, fault: Exception
) -> None:
    with_route(site.app, fault)
    answer = await api.get("/fail", headers={"X-Request-Id": "number-7"})
    assert answer.status_code == 500
    document = answer.json()
    assert (document["code"], document["request_id"]) == ("internal", "number-7")
    assert SECRET not in answer.text and "Traceback" not in answer.text and ".py" not in answer.text
    (line,) = [line for line in site.lines if line["event"] == "request_failed"]
    assert (line["request_id"], line["error"]) == ("number-7", type(fault).__name__)
    assert any("in fail" in frame or frame.endswith(" fail") for frame in line["traceback"])
    assert SECRET not in site.log.getvalue()


async def test_a_damaged_store_is_told_to_the_log_only(site: Site, api: httpx.AsyncClient) -> None:
    with_route(site.app, errors.StorageError("/srv/secret/place cannot be written"))
    answer = await api.get("/fail")
    assert (answer.status_code, answer.json()["code"]) == (500, "storage_error")
    assert "/srv/secret" not in answer.text
    assert "/srv/secret/place" in site.log.getvalue()


UNFIT: list[tuple[Any, str]] = [
    ({"query": "x", "limit": "many"}, "limit"),
    ({"query": "x", "limit": -1}, "limit"),
    ({"query": "x", "unknown": 1}, "unknown"),
    ({"text": "x"}, "query"),
    ({"query": "x", "retrievers": ["smell"]}, "retrievers.0"),
    ({"query": "x", "vector": ["NaN"]}, "vector.0"),
    ({"query": "x", "filter": {"field": "nonsense", "eq": 1}}, "filter"),
    ({}, "query"),
    ([], "body"),
    ({"query": "x" * 20_000}, "query"),
]


@pytest.mark.parametrize(("body", "field"), UNFIT, ids=lambda value: str(value)[:30])
async def test_a_value_that_does_not_fit_is_named(api: httpx.AsyncClient, body: Any, field: str) -> None:
    answer = await api.post("/search", json=body)
    assert answer.status_code in {413, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field


@pytest.mark.parametrize("path", ["/search", "/streams/context", "/memories/retention/apply"])
async def test_an_unknown_field_is_refused_by_its_name(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.post(path, json={"name": "x", "query": "x", "floor": 1})
    assert answer.status_code == 422
    assert "floor" in [problem["field"] for problem in answer.json()["errors"]]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5_000, b'{"text": "\\ud800"}', b'{"text": NaN}'],
    ids=["empty", "torn", "not utf-8", "deep", "huge number", "surrogate", "nan"],
)
async def test_a_body_that_cannot_be_read(api: httpx.AsyncClient, body: bytes) -> None:
    answer = await api.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_unknown_routes_and_methods_are_problems_too(api: httpx.AsyncClient) -> None:
    unknown = await api.get("/nothing/here")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert "begin with /api/v1, and /openapi.json lists them" in unknown.json()["detail"]
    wrong = await api.put("/me")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert (wrong.headers["allow"], wrong.json()["detail"]) == ("GET", "this address takes GET")
    outside = await api.get("http://localhost/nowhere")
    assert (outside.status_code, outside.headers["content-type"]) == (404, "application/problem+json")


async def test_answers_carry_the_headers_of_an_api(api: httpx.AsyncClient) -> None:
    for answer in (await api.get("/me"), await api.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
