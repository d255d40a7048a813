"""What a revoke must also end: answers that are kept for requests sent twice."""

from typing import Any

import httpx
import pytest

from conspectus.errors import StorageBusy, StorageError
from tests.web.conftest import People, Site, filled

KEY = {"Idempotency-Key": "one"}


async def test_a_kept_answer_tells_nothing_after_a_revoke(people: People) -> None:
    await filled(people.alice, "wiki", "Quinces are ripe.")
    bob = {"kind": "user", "id": (await people.bob.get("/me")).json()["id"]}
    grants = "/collections/alice/wiki/grants"
    assert (await people.alice.put(grants, json={"grantee": bob, "role": "viewer"})).status_code == 200
    question = {"query": "quinces", "collection": "alice/wiki"}
    bodies = {
        "/search": question,
        "/context": {**question, "max_tokens": 100},
        "/augment": {"query": "quinces", "max_tokens": 100, "min_similarity": 0},
        "/collections/alice/wiki/documents/count": {},
    }
    for path, body in bodies.items():
        assert (await people.bob.post(path, json=body, headers=KEY)).status_code == 200
    await people.alice.delete(grants, params=bob)
    for path, body in bodies.items():
        answer = await people.bob.post(path, json=body, headers=KEY)
        assert answer.status_code == (200 if path == "/augment" else 404)
        assert "ripe" not in answer.text


async def test_a_kept_answer_is_not_for_a_key_that_may_less(site: Site, people: People) -> None:
    reading = (await site.engine.keys.create("alice", scopes=("read",))).secret
    body = {"name": "wiki"}
    assert (await people.alice.post("/collections", json=body, headers=KEY)).status_code == 201
    async with site.client(reading) as reader:
        answer: httpx.Response = await reader.post("/collections", json=body, headers=KEY)
    assert answer.status_code == 409


@pytest.mark.parametrize("kind", [StorageError, StorageBusy])
async def test_a_stores_error_does_not_say_where_it_is(site: Site, people: People, kind: Any) -> None:
    async def fail() -> None:
        raise kind("/srv/data/records.sqlite is in use by another process")

    site.app.add_api_route("/api/v1/fail", fail)
    assert "srv" not in (await people.bob.get("/fail")).text
