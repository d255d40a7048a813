"""ETags: what a client holds is not sent again, and what it did not see is not overwritten."""

import asyncio

import httpx
import pytest

from tests.web.conftest import filled

PLACES = ["/collections/wiki", "/sources/{source}", "/documents/{document}"]


async def place(api: httpx.AsyncClient, path: str) -> str:
    (document,) = await filled(api)
    source = (await api.get(f"/documents/{document}")).json()["source"]
    return path.format(source=source, document=document)


@pytest.mark.parametrize("path", PLACES)
async def test_what_is_held_is_not_sent_again(api: httpx.AsyncClient, path: str) -> None:
    where = await place(api, path)
    first = await api.get(where)
    tag = first.headers["etag"]
    for header in (tag, f"W/{tag}", "*", f'"other", {tag}'):
        again = await api.get(where, headers={"If-None-Match": header})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    for header in ('"other"', tag.strip('"'), ""):
        assert (await api.get(where, headers={"If-None-Match": header})).json() == first.json()


@pytest.mark.parametrize("path", PLACES)
async def test_only_what_was_read_is_changed(api: httpx.AsyncClient, path: str) -> None:
    where = await place(api, path)
    read = (await api.get(where)).headers["etag"]
    change = {"description": "new"} if "collections" in path else {"metadata": {"a": 1}}
    for stale in ('"other"', f"W/{read}", '"a", "b"', ""):
        refused = await api.patch(where, json=change, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert (await api.get(where)).headers["etag"] == read
    changed = await api.patch(where, json=change, headers={"If-Match": f'"other", {read}'})
    assert changed.status_code == 200
    assert (await api.get(where)).headers["etag"] != read
    assert (await api.patch(where, json=change, headers={"If-Match": read})).status_code == 412
    assert (await api.patch(where, json=change, headers={"If-Match": "*"})).status_code == 200
    assert (await api.patch(where, json=change)).status_code == 200


async def test_a_fingerprint_is_the_tag_of_a_document(api: httpx.AsyncClient) -> None:
    (document,) = await filled(api)
    answer = await api.get(f"/documents/{document}")
    assert answer.headers["etag"] == f'"{answer.json()["fingerprint"]}"'


async def test_of_many_writers_who_read_the_same_one_wins(api: httpx.AsyncClient) -> None:
    (document,) = await filled(api)
    tag = (await api.get(f"/documents/{document}")).headers["etag"]
    changes = [
        api.patch(f"/documents/{document}", json={"text": f"Version {n}"}, headers={"If-Match": tag})
        for n in range(8)
    ]
    statuses = sorted(answer.status_code for answer in await asyncio.gather(*changes))
    assert statuses == [200] + [412] * 7


async def test_a_precondition_tells_nothing_of_what_is_not_there(api: httpx.AsyncClient) -> None:
    for path in ("/collections/none", "/sources/none", "/documents/none"):
        answer = await api.patch(path, json={}, headers={"If-Match": '"x"'})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
