"""Rerankers against servers that fail, stall and return invalid rankings."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.support.model_servers import ModelServer, failing, never, told
from tests.support.vendor_protocols import bedrock, cohere, jina, tei
from tests.support.web_server import Answer

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.model.jobs import EmbeddingRequest
from conspectus.model.retries import RetryPolicy
from conspectus.ports.web import Reranker
from conspectus.providers.registry import reranker_of
from conspectus.providers.request_log import drop
from conspectus.providers.vendor_api import number_in, parse_retry_after, refusal

KEY = "very-secret-key"
ON_BEDROCK = "cohere.rerank-v3-5:0"
TEXTS = ["a red fox", "a blue whale"]


@dataclass(frozen=True)
class Vendor:
    """A reranker, its server, and what it waited and noted."""

    name: str
    server: ModelServer
    make: Callable[..., Reranker]
    waits: list[float]
    notes: list[EmbeddingRequest]

    def results(self, *entries: object) -> Answer:
        if self.name != "tei":
            return told({"results": list(entries)})
        renamed = {"relevance_score": "score"}
        return told(
            [{renamed.get(k, k): v for k, v in e.items()} if isinstance(e, dict) else e for e in entries]
        )


SETTINGS = {
    "cohere": "cohere:rerank-v3.5",
    "bedrock": f"bedrock:{ON_BEDROCK}",
    "jina": "{}/v1/rerank#jina-v2",
    "tei": "{}/rerank",
}


def make_reranker(setting: str, **options) -> Reranker:
    return reranker_of(setting, **{"retry_policy": RetryPolicy(), "timeout": 60.0, "note": drop, **options})


SERVERS = {"cohere": cohere(key=KEY), "bedrock": bedrock(ON_BEDROCK), "jina": jina(), "tei": tei()}


@pytest.fixture
def credentials(monkeypatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("CO_API_KEY", "CONSPECTUS_RERANKER_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(params=list(SERVERS))
async def vendor(request, credentials, monkeypatch) -> AsyncIterator[Vendor]:
    waits, notes, rerankers = [], [], []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    retry_policy = RetryPolicy(sleep=sleep, chance=lambda: 1.0)
    async with ModelServer(SERVERS[request.param]) as server:
        for name in ("CO_API_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
            monkeypatch.setenv(name, server.base)

        def make(**options) -> Reranker:
            setting = SETTINGS[request.param].format(server.base)
            rerankers.append(
                make_reranker(setting, **{"retry_policy": retry_policy, "note": notes.append, **options})
            )
            return rerankers[-1]

        yield Vendor(request.param, server, make, waits, notes)
        for reranker in rerankers:
            await reranker.close()
    assert server.misses == []


async def negotiate_dialect(vendor: Vendor) -> Reranker:
    """A reranker that knows its server's dialect, so that plans are about what follows."""
    reranker = vendor.make()
    await reranker.rerank("fox", TEXTS, limit=1)
    vendor.server.calls.clear()
    vendor.notes.clear()
    return reranker


async def test_nothing_to_judge_asks_nobody(vendor: Vendor) -> None:
    assert list(await vendor.make().rerank("fox", [], limit=5)) == []
    assert vendor.server.calls == []


async def test_what_is_sent(vendor: Vendor) -> None:
    await (await negotiate_dialect(vendor)).rerank("fox", [*TEXTS, ""], limit=2)
    body, texts = vendor.server.calls[0].body, [*TEXTS, "."]
    expected = {
        "cohere": {"model": "rerank-v3.5", "documents": texts, "top_n": 2, "max_tokens_per_doc": 4096},
        "bedrock": {"api_version": 2, "documents": texts, "top_n": 2, "max_tokens_per_doc": 4096},
        "jina": {"model": "jina-v2", "documents": texts, "top_n": 2, "return_documents": False},
        "tei": {"texts": texts, "truncate": True},
    }
    assert body == {"query": "fox", **expected[vendor.name]}


async def test_more_is_not_asked_for_than_there_is(vendor: Vendor) -> None:
    await (await negotiate_dialect(vendor)).rerank("fox", TEXTS, limit=50)
    assert vendor.server.calls[0].body.get("top_n", 2) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_service_is_asked_again_when_it_said(vendor: Vendor, status: int) -> None:
    reranker = await negotiate_dialect(vendor)
    vendor.server.plan.extend([failing(status, retry_after=7), failing(status)])
    assert (await reranker.rerank("fox", TEXTS, limit=1))[0][0] == 0
    assert (vendor.waits, len(vendor.server.calls)) == ([7.0, 2.0], 3)
    assert [note.error for note in vendor.notes] == [f"HTTP {status}", f"HTTP {status}", None]


async def test_patience_ends(vendor: Vendor) -> None:
    reranker = await negotiate_dialect(vendor)
    vendor.server.plan.extend([failing(429, retry_after=1)] * 9)
    with pytest.raises(ProviderUnavailable) as refused:
        await reranker.rerank("fox", TEXTS, limit=1)
    assert (refused.value.status, refused.value.retry_after, len(vendor.server.calls)) == (429, 1.0, 5)


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_a_service_that_fails_may_answer_later(vendor: Vendor, status: int) -> None:
    reranker = await negotiate_dialect(vendor)
    vendor.server.plan.append(failing(status))
    with pytest.raises(ProviderUnavailable, match=f"HTTP {status}"):
        await reranker.rerank("fox", TEXTS, limit=1)
    assert len(vendor.server.calls) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_final_and_does_not_quote_the_key(vendor: Vendor, status: int) -> None:
    reranker = await negotiate_dialect(vendor)
    vendor.server.plan.append(failing(status, f"no such thing{f' for {KEY}' * (vendor.name != 'bedrock')}"))
    with pytest.raises(ProviderError, match=f"HTTP {status}") as refused:
        await reranker.rerank("fox", TEXTS, limit=1)
    assert not isinstance(refused.value, ProviderUnavailable)
    assert (refused.value.status, len(vendor.server.calls)) == (status, 1)
    assert KEY not in str(refused.value)
    assert [note.error for note in vendor.notes] == [f"HTTP {status}"]


GOOD = {"index": 0, "relevance_score": 0.5}


NO_RANKINGS = [
    [],
    [GOOD],
    [GOOD, GOOD],
    [GOOD, {"index": 2, "relevance_score": 0.5}],
    [GOOD, {"index": -1, "relevance_score": 0.5}],
    [GOOD, {"index": True, "relevance_score": 0.5}],
    [GOOD, {"index": "1", "relevance_score": 0.5}],
    [GOOD, {"index": 1.0, "relevance_score": 0.5}],
    [GOOD, {"index": 1}],
    [GOOD, {"relevance_score": 0.5}],
    [GOOD, {"index": 1, "relevance_score": None}],
    [GOOD, {"index": 1, "relevance_score": "0.5"}],
    [GOOD, {"index": 1, "relevance_score": float("nan")}],
    [GOOD, {"index": 1, "relevance_score": float("inf")}],
    [GOOD, {"index": 1, "relevance_score": -4.2}],
    [GOOD, {"index": 1, "relevance_score": 1.1}],
    [GOOD, None],
    [GOOD, [1, 0.5]],
]


async def test_a_ranking_that_cannot_be_is_refused(vendor: Vendor) -> None:
    reranker = await negotiate_dialect(vendor)
    for entries in NO_RANKINGS:
        vendor.server.plan.extend([vendor.results(*entries)] * 2)
        with pytest.raises(ProviderUnavailable):
            pytest.fail(f"taken: {await reranker.rerank('fox', TEXTS, limit=2)}")
    assert [note.error for note in vendor.notes] == ["provider_unavailable"] * 2 * len(NO_RANKINGS)


NO_ANSWERS = [
    Answer(b"<html>hello</html>"),
    Answer(b""),
    Answer(b"\xff\xfe"),
    Answer(b"[" * 100_000),
    told(None),
    told("ok"),
    told({"results": {"index": 0}}),
    told({"results": None}),
]


async def test_an_answer_that_is_no_ranking_is_refused(vendor: Vendor) -> None:
    reranker = await negotiate_dialect(vendor)
    for answer in NO_ANSWERS:
        vendor.server.plan.extend([answer] * 2)
        with pytest.raises(ProviderUnavailable) as refused:
            pytest.fail(f"taken: {await reranker.rerank('fox', TEXTS, limit=2)}")
        assert refused.value.verdict == "answer"


async def test_the_order_is_ours_whatever_the_service_says(vendor: Vendor) -> None:
    reranker = await negotiate_dialect(vendor)
    worse, better = {"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 1.00001}
    vendor.server.plan.append(vendor.results(worse, better))
    assert list(await reranker.rerank("fox", TEXTS, limit=1)) == [(1, 1.0)]


async def test_a_service_that_does_not_answer_is_unavailable(vendor: Vendor) -> None:
    reranker = vendor.make(timeout=0.5)
    vendor.server.plan.append(never())
    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.5 s"):
        await reranker.rerank("fox", TEXTS, limit=1)
    assert [note.error for note in vendor.notes] == ["provider_unavailable"]


async def test_a_service_that_breaks_off_is_unavailable(vendor: Vendor) -> None:
    reranker = await negotiate_dialect(vendor)
    vendor.server.plan.append(Answer(b"x" * 1000, broken=True))
    with pytest.raises(ProviderUnavailable, match="could not be reached"):
        await reranker.rerank("fox", TEXTS, limit=1)


async def test_tokens_are_the_vendors_count_or_an_estimate(vendor: Vendor) -> None:
    await (await negotiate_dialect(vendor)).rerank("red fox", TEXTS, limit=1)
    (note,) = vendor.notes
    counted = {"cohere": 11, "bedrock": 11, "jina": 6, "tei": 4}
    assert (note.kind, note.status, note.inputs) == ("rerank", "success", 2)
    assert note.tokens == counted[vendor.name]
    assert KEY not in repr(note) and "whale" not in repr(note)


async def test_the_dialect_is_found_once() -> None:
    async with ModelServer(tei()) as server:
        reranker = make_reranker(f"{server.base}/rerank")
        for _ in range(2):
            await reranker.rerank("fox", [f"text {number}" for number in range(70)], limit=3)
        await reranker.close()
    sent = [len(call.body.get("texts", ())) for call in server.calls]
    assert sent == [0, 32, 32, 6, 32, 32, 6]


async def test_a_service_that_knows_neither_dialect_is_named_by_its_second_refusal() -> None:
    async with ModelServer(tei()) as server:
        server.plan.extend([failing(422, "one"), failing(422, "two")])
        reranker = make_reranker(f"{server.base}/rerank")
        with pytest.raises(ProviderError, match="two"):
            await reranker.rerank("fox", TEXTS, limit=3)
        await reranker.close()


@pytest.mark.parametrize("url", ["", "rerank", "ftp://example.org/rerank", "http://", "https:///rerank"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="reranker"):
        make_reranker(url)


async def test_what_is_secret_in_an_address_is_not_shown() -> None:
    reranker = make_reranker("https://ann:secret@example.org:8080/rerank?key=secret")
    assert reranker.model == "https://example.org:8080/rerank"
    await reranker.close()


@pytest.mark.parametrize(
    ("count", "tokens"),
    [(7, 7), (7.0, 7), (0, None), (-1, None), (float("inf"), None), ("9" * 5000, None), (None, None)],
)
def test_counts_of_tokens_are_not_trusted(count: object, tokens: int | None) -> None:
    assert number_in({"usage": {"total_tokens": count}}, "usage", "total_tokens") == tokens
    assert number_in(count, "usage") is None


async def test_bedrock_without_credentials(monkeypatch, tmp_path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(ProviderError, match="region"):
        make_reranker(SETTINGS["bedrock"])
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    reranker = make_reranker(SETTINGS["bedrock"])
    with pytest.raises(ProviderError, match="no credentials are set"):
        await reranker.rerank("fox", TEXTS, limit=1)
    await reranker.close()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("0", 0.0), ("12", 12.0), ("soon", None), ("", None), ("-3", None), ("1e3", None)],
)
def test_waiting_times(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header) == seconds


def test_nobody_waits_longer_than_a_day() -> None:
    seconds = parse_retry_after("9" * 400)
    assert refusal("p", 429, retry_after=seconds).retry_after == 86_400.0


def test_a_waiting_time_may_be_a_date() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=100)
    assert parse_retry_after(format_datetime(soon, usegmt=True)) == pytest.approx(100, abs=30)
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
