"""Documents as JSON Lines over HTTP."""

import httpx

LINES = {"Content-Type": "application/x-ndjson"}
AS_LINES = {"Accept": "application/x-ndjson"}
EXPORT = "/collections/default/documents/export"


async def test_document_lines_go_out_as_a_stream_and_come_in_again(api: httpx.AsyncClient) -> None:
    documents = [{"text": f"Page {number} 🎉", "key": str(number)} for number in range(30)]
    await api.post("/collections", json={"name": "default"})
    added = await api.post("/collections/default/documents", json={"documents": documents})
    assert added.status_code == 201, added.text
    exported = await api.get(EXPORT, headers=AS_LINES)
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert len(exported.text.splitlines()) == 30
    page = (await api.get(EXPORT, params={"limit": 7})).json()
    assert (page["lines"], page["next"] is None) == (exported.text.splitlines()[:7], False)
    for outcome, collection in (("unchanged", "default"), ("added", "copy"), ("unchanged", "copy")):
        path = f"/collections/{collection}/documents/import"
        answer = await api.post(path, content=exported.content, headers=LINES)
        assert (answer.status_code, answer.json()[outcome]) == (200, 30), answer.text


async def test_a_wrong_document_line_has_its_number(api: httpx.AsyncClient) -> None:
    good = '{"source": "s", "key": "a", "text": "Fine."}'
    path = "/collections/default/documents/import"
    answer = await api.post(path, content=f"{good}\n\n{{\n".encode(), headers=LINES)
    assert (answer.status_code, answer.json()["field"]) == (422, "line 3")
