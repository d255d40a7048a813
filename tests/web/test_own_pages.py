"""What a server says of itself, and its manual, to anybody and without loading anything."""

import re

from httpx import AsyncClient

from tests.waiting import until
from tests.web.conftest import Site


async def answers(api: AsyncClient, path: str) -> bool:
    """Whether there is something at this path, and it is well."""
    return (await api.get(path)).status_code == 200


async def test_the_root_says_what_this_is(site: Site) -> None:
    async with site.client() as api:
        told = (await api.get("http://localhost/")).json()
        assert (told["name"], told["api"]) == ("Conspectus", "/api/v1")
        assert (await api.get(f"http://localhost{told['openapi']}")).status_code == 200
        health = f"http://localhost{told['health']}"
        await until(lambda: answers(api, health))


async def test_the_manual_has_every_operation_and_loads_nothing(site: Site) -> None:
    async with site.client() as api:
        answer = await api.get("http://localhost/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for path, operations in site.app.openapi()["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in answer.text
    assert not re.search(r"<script|<link|<img|<style|src=|https?://", answer.text)
    links = re.findall(r'href="#([^"]+)"', answer.text)
    assert {name for name in links if f'id="{name}"' not in answer.text} == set()
