"""One line for every request, with what those who run a server need and nothing of what it holds."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from tests.waiting import until
from tests.web.conftest import OpenSite, People, Site, filled

SECRETS = ("Zanzibar", "Quetzal", "hunter2")


async def test_a_line_says_who_asked_what_and_how_it_went(site: Site, people: People) -> None:
    await people.alice.get("/collections/Quetzal", headers={"X-Request-Id": "a.b-c_1"})
    line = site.requests[-1]
    alice = (await site.engine.people.get_user("alice")).id
    assert line.pop("milliseconds") >= 0
    assert line.pop("sent") > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line.pop("timestamp"))
    assert line == {
        "event": "request", "level": "info", "request_id": "a.b-c_1", "method": "GET", "status": 404,
        "route": "/api/v1/collections/{collection:path}", "person": alice, "received": 0,
    }  # fmt: skip


async def test_nothing_of_the_content_and_no_secret_is_logged(site: Site, people: People) -> None:
    await filled(people.alice, "Quetzal", "Zanzibar is an island.")
    await people.alice.post("/search", json={"query": "Zanzibar", "collection": "Quetzal"})
    await people.alice.get("/collections/Quetzal/documents?filter=metadata.a%3DZanzibar")
    await people.alice.post("/search", json={"query": "Zanzibar", "filter": {"field": "Zanzibar"}})
    await people.alice.post("/search", content="Zanzibar")
    await people.alice.get("/Zanzibar")
    await people.alice.request("QUETZAL", "/me")
    await people.alice.get("/me", headers={"Authorization": "Bearer csp_hunter2_hunter2"})
    new_secret = (await people.alice.post("/keys", json={"label": "Quetzal"})).json()["secret"]
    log = site.log.getvalue()
    assert len(site.requests) >= 10
    for secret in (*SECRETS, *people.keys.values(), new_secret, new_secret.rpartition("_")[2], "alice"):
        assert secret.lower() not in log.lower()


@pytest.mark.parametrize("request_id", ["", "a b", "x" * 129, "a\tb", '"}', "\u00e9", "a/b", "None\u2028"])
async def test_a_request_id_that_could_forge_a_line_is_replaced(site: Site, request_id: str) -> None:
    async with site.client() as client:
        answer = await client.get("/me", headers=[(b"X-Request-Id", request_id.encode())])
    new_id = answer.headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{32}", new_id)
    assert site.requests[-1]["request_id"] == new_id


async def test_every_answer_names_its_request(api: httpx.AsyncClient) -> None:
    answers = [await api.get(path) for path in ("/me", "/nothing", "http://localhost/health/live")]
    answers.append(await api.get("/me", headers={"Authorization": "Bearer no"}))
    assert len({answer.headers["x-request-id"] for answer in answers}) == 4


async def test_a_client_that_leaves_is_noted(site: Site) -> None:
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        await asyncio.sleep(3_600)

    site.app.add_api_route("/api/v1/slow", slow)
    async with site.client() as client:
        task = asyncio.create_task(client.get("/slow"))
        await started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (site.requests[-1]["route"], site.requests[-1]["status"]) == ("/api/v1/slow", 0)


def parse_metrics(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def test_metrics_count_by_route_and_status(api: httpx.AsyncClient) -> None:
    for name in ("one", "two"):
        await api.get(f"/collections/{name}")
    await api.request("BREW", "/me")
    answer = await api.get("http://localhost/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    metrics = parse_metrics(answer.text)
    route = 'method="GET",route="/api/v1/collections/{collection:path}"'
    assert metrics[f'conspectus_requests_total{{{route},status="404"}}'] == 2
    assert metrics[f"conspectus_request_seconds_count{{{route}}}"] == 2
    assert metrics['conspectus_requests_total{method="other",route="/api/v1/me",status="405"}'] == 1
    assert metrics["conspectus_requests_in_flight"] == 1
    assert metrics['conspectus_build{version="0.1.0"}'] == 1
    assert "one" not in answer.text


async def test_metrics_tell_jobs_by_state(site: Site, api: httpx.AsyncClient) -> None:
    files = {"files": ("a.txt", b"A text.")}
    job = (await api.post("/collections/wiki/ingest/files", files=files)).json()
    await api.get(f"/jobs/{job['id']}?wait=30")
    metrics = parse_metrics((await api.get("http://localhost/metrics")).text)
    assert metrics['conspectus_jobs{state="succeeded"}'] == 1


async def test_metrics_are_for_the_owner_once_there_are_accounts(site: Site, people: People) -> None:
    url = "http://localhost/metrics"
    async with site.client() as nobody:
        assert (await nobody.get(url)).status_code == 401
    assert (await people.alice.get(url)).status_code == 403
    assert (await people.owner.get(url)).status_code == 200
    reader = await site.engine.keys.create("owner", scopes=["read"])
    async with site.client(reader.secret) as client:
        assert (await client.get(url)).status_code == 200


async def test_health_needs_no_key(site: Site, people: People) -> None:
    async with site.client() as nobody:
        live = await nobody.get("http://localhost/health/live")
        assert (live.status_code, live.json()) == (200, {"status": "alive"})


async def test_ready_only_between_replay_and_the_end(site: Site, api: httpx.AsyncClient) -> None:
    url = "http://localhost/health/ready"
    readiness = site.app.state.readiness
    await readiness.replay()
    assert ((await api.get(url)).status_code, readiness.state) == (200, "ready")
    for state in ("starting", "stopping"):
        readiness.state = state
        answer = await api.get(url)
        assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        assert answer.headers["retry-after"] == "1"
        assert (await api.get("http://localhost/health/live")).status_code == 200


async def test_ready_means_that_every_index_follows_the_records(open_site: OpenSite, tmp_path: Path) -> None:
    async with open_site() as site, site.client() as api:
        await filled(api)
    index = tmp_path / "data" / "index"
    index.write_text("in the way", encoding="utf-8")
    async with open_site() as site, site.client() as api:
        failed = asyncio.create_task(site.app.state.readiness.replay())
        await until(lambda: bool(site.lines))
        assert site.lines[0]["event"] == "readiness_failed"
        assert (await api.get("http://localhost/health/ready")).status_code == 503
        index.unlink()
        await site.app.state.readiness.replay()
        assert (await api.get("http://localhost/health/ready")).status_code == 200
        failed.cancel()
