"""The console: its files, and the sessions of browsers that it needs."""

import asyncio
import gzip
import http.client
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

import conspectus
from conspectus.errors import Unauthenticated
from conspectus.settings import Settings
from conspectus.web.routes.pages import folder_of
from tests.web.conftest import Live, OpenSite, People, Site, peopled

PAGE = "<!doctype html><title>Console</title><script type=module src=/console/assets/app-1a2b.js></script>"
SCRIPT = "document.title = 'Conspectus'"
OWN = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The output of a build, beside a file that is none of it."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("nobody sees this")
    (folder / "index.html").write_text(PAGE)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "app-1a2b.js").write_text(SCRIPT)
    (folder / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (folder / "assets" / "text-3c4d.woff2").write_bytes(b"wOF2")
    return folder


@pytest.fixture
async def pages(site: Site, built: Path) -> httpx.AsyncClient:
    """Whoever opens the console, without a key."""
    site.app.state.console = folder_of(built)
    return httpx.AsyncClient(transport=httpx.ASGITransport(site.app), base_url="http://localhost")


@pytest.mark.parametrize("path", ["", "/", "/documents/abc", "/streams/a%2Fb", "/a.b/c", "/secret.txt"])
async def test_every_path_that_is_no_file_is_the_page(pages: httpx.AsyncClient, path: str) -> None:
    answer = await pages.get(f"/console{path}")
    assert (answer.status_code, answer.text) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_page_is_sent_again_only_when_it_changed(
    site: Site, pages: httpx.AsyncClient, built: Path
) -> None:
    tag = (await pages.get("/console")).headers["etag"]
    same = await pages.get("/console/x", headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    (built / "index.html").write_text("new")
    site.app.state.console = folder_of(built)
    assert (await pages.get("/console", headers={"If-None-Match": tag})).text == "new"


async def test_files_have_their_type_and_are_kept_if_their_name_has_a_hash(
    pages: httpx.AsyncClient,
) -> None:
    script = await pages.get("/console/assets/app-1a2b.js", headers={"Accept-Encoding": "br, gzip;q=0"})
    assert (script.text, script.headers["content-type"]) == (SCRIPT, "text/javascript; charset=utf-8")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (script.headers["vary"], "content-encoding" in script.headers) == ("Accept-Encoding", False)
    packed = await pages.get("/console/assets/app-1a2b.js", headers={"Accept-Encoding": "br, gzip"})
    assert (packed.text, packed.headers["content-encoding"]) == (SCRIPT, "gzip")
    assert packed.headers["etag"] != script.headers["etag"]
    font, icon = [await pages.get(f"/console/{name}") for name in ("assets/text-3c4d.woff2", "icon.svg")]
    assert (font.headers["content-type"], icon.headers["content-type"]) == ("font/woff2", "image/svg+xml")
    assert icon.headers["cache-control"] == "no-cache"
    gone = await pages.get("/console/assets/app-0000.js")
    assert (gone.status_code, gone.headers["cache-control"]) == (404, "no-store")


async def test_a_checkout_that_was_not_built_says_how(pages: httpx.AsyncClient, built: Path) -> None:
    (built / "index.html").unlink()
    answer = await pages.get("/console/documents")
    assert (answer.status_code, "make console" in answer.text) == (404, True)
    assert answer.headers["content-type"].startswith("text/html")


ACCEPTS = {
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": 307,
    "text/html;q=0.8, application/json": 200,
    "application/json": 200,
    "*/*": 200,
    "text/html;q=none": 200,
}


@pytest.mark.parametrize("accept", ACCEPTS)
async def test_the_root_leads_browsers_to_the_console(pages: httpx.AsyncClient, accept: str) -> None:
    answer = await pages.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["vary"]) == (ACCEPTS[accept], "Accept")
    assert answer.headers.get("location") == ("/console" if answer.is_redirect else None)


def raw(address: str, method: str, path: str) -> tuple[int, bytes, dict[str, str]]:
    """The answer to a path that is sent as it is."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}


ESCAPES = ["../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "assets/../../secret.txt"]
ESCAPES += ["assets/..%5c..%5csecret.txt", "/etc/passwd", "%2fetc%2fpasswd", "index.html%00.js", "%ff"]


def test_a_server_sends_no_file_from_elsewhere_and_answers_head(tmp_path: Path, built: Path) -> None:
    def prepare(app: FastAPI) -> None:
        app.state.console = folder_of(built)

    with Live(tmp_path / "data", Settings(embedder="none"), prepare) as live:
        for path in ESCAPES:
            status, body, _ = raw(live.address, "GET", f"/console/{path}")
            assert status in {200, 404}, path
            assert b"nobody sees" not in body and b"root:" not in body, path
        for path in ("/console", "/console/assets/app-1a2b.js"):
            status, body, headers = raw(live.address, "GET", path)
            head = raw(live.address, "HEAD", path)
            assert (status, head[0], head[1]) == (200, 200, b"")
            assert head[2]["content-length"] == str(len(body)) and head[2]["etag"] == headers["etag"]


async def log_in_browser(site: Site, key: str, **headers: str) -> httpx.AsyncClient:
    """A browser with a session."""
    client = site.client(**OWN)
    answer = await client.post("/session", json={"key": key}, headers=headers)
    assert answer.status_code == 200, answer.text
    return client


async def test_a_key_opens_a_session_and_logging_out_ends_it(site: Site, people: People) -> None:
    client = site.client(**OWN)
    answer = await client.post("/session", json={"key": people.keys["alice"]})
    assert answer.json() == (await people.alice.get("/me")).json()
    _, *attributes = answer.headers["set-cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert (await client.get("/me")).json()["name"] == "alice"
    assert (await client.post("/collections", json={"name": "mine"})).status_code == 201
    for _ in range(2):
        assert (await client.delete("/session")).status_code == 204
    assert (await client.get("/me")).status_code == 401
    assert people.keys["alice"] not in site.log.getvalue()


async def test_a_session_ends_with_its_key(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["bob"])
    (key,) = (await client.get("/keys")).json()
    await people.bob.delete(f"/keys/{key['id']}")
    assert (await client.get("/me")).status_code == 401


async def test_the_cookie_is_no_key_and_is_worth_nothing_after_a_logout(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["alice"])
    cookies = httpx.Cookies(client.cookies)
    (token,) = cookies.values()
    assert token.startswith("css_") and people.keys["alice"] not in token
    bearer = {"Authorization": f"Bearer {token}"}
    async with site.client() as program:
        assert (await program.get("/me", headers=bearer)).status_code == 401
    assert (await client.delete("/session")).status_code == 204
    async with site.client(**OWN) as thief:
        thief.cookies = cookies
        assert (await thief.get("/me")).status_code == 401
    assert token not in site.log.getvalue()


async def test_a_key_in_the_cookie_opens_nothing(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["alice"])
    (name,) = client.cookies.keys()
    async with site.client(**OWN) as older:
        older.cookies.set(name, people.keys["alice"])
        assert (await older.get("/me")).status_code == 401


@pytest.mark.parametrize("change", ["rotate", "disable"])
async def test_a_session_ends_when_its_key_is_replaced_or_its_user_disabled(
    site: Site, people: People, change: str
) -> None:
    client = await log_in_browser(site, people.keys["bob"])
    (key,) = (await people.bob.get("/keys")).json()
    if change == "rotate":
        assert (await people.bob.post(f"/keys/{key['id']}/rotate")).status_code == 201
    else:
        await people.owner.patch("/users/bob", json={"disabled": True})
    assert (await client.get("/me")).status_code == 401


async def test_sessions_are_listed_and_ended_one_by_one(site: Site, people: People) -> None:
    laptop, phone = [await log_in_browser(site, people.keys["alice"]) for _ in range(2)]
    await log_in_browser(site, people.keys["bob"])
    newest, oldest = (await laptop.get("/sessions")).json()
    assert newest["key"] == oldest["key"]
    assert len((await people.owner.get("/sessions", params={"user": "*"})).json()) == 3
    assert (await people.bob.delete(f"/sessions/{newest['id']}")).status_code == 404
    assert (await laptop.delete(f"/sessions/{newest['id']}")).status_code == 204
    assert (await phone.get("/me")).status_code == 401
    assert [session["id"] for session in (await laptop.get("/sessions")).json()] == [oldest["id"]]
    (entry, *_) = (await people.owner.get("/audit")).json()["entries"]
    change = entry["action"], entry["subject"], entry["subject_name"]
    assert change == ("end_session", newest["id"], "alice")


async def test_an_invitation_logs_in_once(site: Site, people: People) -> None:
    created = (await people.owner.post("/invitations", json={"user": "bob"})).json()
    client = site.client(**OWN)
    answers = await asyncio.gather(
        *(client.post("/session", json={"invitation": created["token"]}) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
    (accepted,) = [answer for answer in answers if answer.status_code == 200]
    assert (accepted.json()["name"], accepted.json()["scopes"]) == ("bob", ["read", "write"])
    assert (await client.get("/me")).json() == accepted.json()
    assert created["token"] not in site.log.getvalue()
    (session,) = (await client.get("/sessions")).json()
    assert session["key"] is None
    assert (await people.owner.get("/invitations")).json() == []
    assert (await people.owner.delete(f"/sessions/{session['id']}")).status_code == 204
    assert (await client.get("/me")).status_code == 401


@pytest.mark.parametrize("body", [{}, {"key": "csp_x", "invitation": "csi_x"}, {"key": None}])
async def test_a_login_has_either_a_key_or_an_invitation(
    site: Site, people: People, body: dict[str, Any]
) -> None:
    created = (await people.owner.post("/invitations", json={"user": "bob"})).json()
    if "invitation" in body:
        body = {"key": people.keys["alice"], "invitation": created["token"]}
    async with site.client(**OWN) as client:
        answer = await client.post("/session", json=body)
    assert answer.status_code == (422 if body.get("key") else 401)
    assert [open["id"] for open in (await people.owner.get("/invitations")).json()] == [
        created["invitation"]["id"]
    ]


async def test_a_page_of_another_origin_accepts_no_invitation(site: Site, people: People) -> None:
    created = (await people.owner.post("/invitations", json={"user": "bob"})).json()
    async with site.client() as client:
        foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        answer = await client.post("/session", json={"invitation": created["token"]}, headers=foreign)
    assert answer.status_code == 403
    assert len((await people.owner.get("/invitations")).json()) == 1


async def test_a_page_of_another_origin_ends_no_session(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["alice"])
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert (await client.delete("/session", headers=foreign)).status_code == 403
    assert (await client.get("/me")).status_code == 200


async def test_a_session_holds_in_another_process_until_its_end(
    tmp_path: Path, site: Site, people: People
) -> None:
    client = await log_in_browser(site, people.keys["alice"])
    (token,) = client.cookies.values()
    async with conspectus.open(tmp_path / "data", settings=site.settings) as other:
        assert (await other.sessions.authenticate(token)).name == "alice"
        await client.delete("/session")
        with pytest.raises(Unauthenticated):
            await other.sessions.authenticate(token)


async def test_over_https_the_cookie_is_secure_also_behind_a_proxy(site: Site, people: People) -> None:
    body = {"json": {"key": people.keys["alice"]}}
    transport = httpx.ASGITransport(site.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://a.example/api/v1") as direct:
        assert "Secure" in (await direct.post("/session", **body)).headers["set-cookie"]
    proxied = {"Host": "a.example:444", "Origin": "https://a.example:444"}
    async with site.client(**proxied) as client:
        cookie = (await client.post("/session", **body)).headers["set-cookie"]
    assert "Secure" in cookie and cookie.startswith("conspectus_session_444=")


BAD_LOGINS = [b"", b"{", b"[" * 4_000, b"[]", b'{"key": 1}', b'{"key": "csp_wrong"}', b'{"key": "\\ud800"}']


@pytest.mark.parametrize("body", BAD_LOGINS)
async def test_a_wrong_login_is_answered_like_a_wrong_key(site: Site, people: People, body: bytes) -> None:
    async with site.client("csp_wrong") as wrong, site.client(**OWN) as client:
        refused = await wrong.get("/me")
        answer = await client.post("/session", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.content) == (401, refused.content)
    assert "set-cookie" not in answer.headers


async def test_logins_are_small_and_are_counted(open_site: OpenSite) -> None:
    limits = {"address_failures_per_minute": 3, "failure_delay_seconds": 0}
    async with open_site(**limits) as site, peopled(site), site.client(**OWN) as client:
        large = await client.post("/session", json={"key": "x" * 5_000})
        assert (large.status_code, large.json()["code"]) == (413, "too_large")
        answers = [await client.post("/session", json={"key": "csp_wrong"}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429]


FOREIGN = [
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    {"Origin": "https://app.example", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_a_page_of_another_origin_cannot_use_a_session(
    open_site: OpenSite, headers: dict[str, str]
) -> None:
    async with open_site(cors_origins="https://app.example") as site, peopled(site) as people:
        cookies = (await log_in_browser(site, people.keys["alice"])).cookies
        async with site.client(**headers) as page:
            login = await page.post("/session", json={"key": people.keys["alice"]})
            page.cookies = cookies
            answers = [login, await page.get("/me"), await page.post("/collections", json={"name": "x"})]
        assert [answer.status_code for answer in answers] == [403, 403, 403]
        assert (await people.alice.get("/collections")).json() == []


async def test_a_write_with_a_cookie_needs_to_say_where_it_comes_from(site: Site, people: People) -> None:
    cookies = (await log_in_browser(site, people.keys["alice"])).cookies
    async with site.client() as unknown:
        unknown.cookies = cookies
        assert (await unknown.get("/me")).status_code == 200
        assert (await unknown.post("/collections", json={"name": "x"})).status_code == 403
        for header in OWN.items():
            answer = await unknown.post("/collections", json={"name": header[0]}, headers=dict([header]))
            assert answer.status_code == 201


async def test_a_header_counts_before_the_cookie(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["alice"])
    bob = {"Authorization": f"Bearer {people.keys['bob']}"}
    assert (await client.get("/me", headers=bob)).json()["name"] == "bob"
    wrong = await client.get("/me", headers={"Authorization": "Bearer csp_wrong"})
    assert wrong.status_code == 401


async def test_a_cookie_opens_the_api_only(site: Site, people: People) -> None:
    client = await log_in_browser(site, people.keys["owner"])
    assert (await client.get("/me")).status_code == 200
    assert (await client.get("http://localhost/metrics")).status_code == 401
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert (await client.post("http://localhost/mcp", json=ping)).status_code == 401


async def test_without_accounts_no_session_is_needed(api: httpx.AsyncClient) -> None:
    answer = await api.post("/session", json={"key": "any"}, headers=OWN)
    assert (answer.json()["name"], "set-cookie" in answer.headers) == ("local", False)
    assert (await api.delete("/session")).status_code == 204


@pytest.fixture
async def manual(site: Site, tmp_path: Path) -> httpx.AsyncClient:
    """Whoever opens the documentation, of which only compressed files are stored."""
    folder = tmp_path / "docs"
    site.app.state.docs = folder_of(folder)
    (folder / "guides").mkdir(parents=True)
    for name in ("index.html", "guides/chat.html", "search.js", "llms.txt", "llms-full.txt"):
        (folder / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    return httpx.AsyncClient(transport=httpx.ASGITransport(site.app), base_url="http://localhost")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_the_documentation_is_sent_as_the_client_reads_it(
    manual: httpx.AsyncClient, encoding: str
) -> None:
    headers = {"Accept-Encoding": encoding}
    begun = await manual.get("/console/docs", headers=headers)
    assert (begun.status_code, begun.headers["location"]) == (307, "/console/docs/")
    for path, name in (
        ("", "index.html"),
        ("guides/chat.html", "guides/chat.html"),
        ("search.js", "search.js"),
    ):
        answer = await manual.get(f"/console/docs/{path}", headers=headers)
        assert (answer.text, answer.headers.get("content-encoding", "identity")) == (name, encoding)
        assert "unsafe" not in answer.headers["content-security-policy"]
        conditional_headers = {**headers, "If-None-Match": answer.headers["etag"]}
        assert (await manual.get(f"/console/docs/{path}", headers=conditional_headers)).status_code == 304


@pytest.mark.parametrize("name", ["llms.txt", "llms-full.txt"])
async def test_language_models_find_the_documentation_where_they_look(
    manual: httpx.AsyncClient, name: str
) -> None:
    answer = await manual.get(f"/{name}", follow_redirects=True)
    assert (answer.url.path, answer.text) == (f"/console/docs/{name}", name)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_the_documentation_has_no_pages_but_its_own(
    manual: httpx.AsyncClient, site: Site, tmp_path: Path
) -> None:
    for path in ("x.html", "guides", "%2e%2e/secret.txt", "index.html.gz/x"):
        assert (await manual.get(f"/console/docs/{path}")).status_code == 404
    site.app.state.docs = folder_of(tmp_path / "nothing")
    answer = await manual.get("/console/docs/")
    assert (answer.status_code, "make docs" in answer.text) == (404, True)
