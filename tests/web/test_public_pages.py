"""What a server says of itself, and its manual, to anybody and without a key."""

from pathlib import Path

from httpx import AsyncClient

from conspectus.web.routes.pages import folder_of
from tests.waiting import until
from tests.web.conftest import Site


async def answers(api: AsyncClient, path: str) -> bool:
    """Whether there is something at this path, and it is well."""
    return (await api.get(path)).status_code == 200


async def test_the_root_says_what_this_is(site: Site) -> None:
    async with site.client() as api:
        root = (await api.get("http://localhost/")).json()
        assert (root["name"], root["api"]) == ("Conspectus", "/api/v1")
        assert (await api.get(f"http://localhost{root['openapi']}")).status_code == 200
        health = f"http://localhost{root['health']}"
        await until(lambda: answers(api, health))


async def test_the_page_of_the_api_is_one_of_the_console(site: Site, tmp_path: Path) -> None:
    site.app.state.console = folder_of(tmp_path)
    async with site.client() as api:
        missing = await api.get("http://localhost/docs")
        assert (missing.status_code, "make console" in missing.text) == (404, True)
        (tmp_path / "api.html").write_text("<title>API</title>")
        site.app.state.console = folder_of(tmp_path)
        answer = await api.get("http://localhost/docs")
    assert (answer.status_code, answer.text) == (200, "<title>API</title>")
    assert answer.headers["content-type"].startswith("text/html")
    assert "unsafe" not in answer.headers["content-security-policy"]
