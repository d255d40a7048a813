"""Sign-in of a browser on the pages of an issuer: cookies, where the browser is sent, and its ends."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from conspectus.errors import InvalidInput
from tests.support.sign_in_issuer import CLIENT, END_SESSION, SECRET, SignInIssuer
from tests.support.token_issuer import AUDIENCE
from tests.web.conftest import OpenSite, Site

PUBLIC = "https://context.example.org"
CALLBACK = f"{PUBLIC}/sign-in/callback"
FAILED = f"{PUBLIC}/console/#sign-in=failed"
ATTEMPT = "__Host-conspectus_sign_in"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Desk:
    """A site behind a proxy that speaks HTTPS, its issuer, and Ann, who is known to both."""

    issuer: SignInIssuer
    site: Site

    def browser(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.site.app), base_url=PUBLIC)

    async def begin(self, browser: httpx.AsyncClient) -> str:
        """The address at which the browser comes back from the issuer."""
        answer = await browser.get("/sign-in", headers=OWN_PAGE)
        assert answer.status_code == 303
        return f"{CALLBACK}?{urlencode(self.issuer.answer(answer.headers['location']))}"

    async def sign_in(self, browser: httpx.AsyncClient) -> httpx.Response:
        return await browser.get(await self.begin(browser))


async def whoami(browser: httpx.AsyncClient) -> int:
    return (await browser.get("/api/v1/me")).status_code


@pytest.fixture
async def desk(open_site: OpenSite) -> AsyncIterator[Desk]:
    async with SignInIssuer() as issuer:
        settings = {
            "oidc_issuer": issuer.url,
            "oidc_audience": AUDIENCE,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
            "oidc_name": "Example",
            "public_address": PUBLIC,
            "address_failures_per_minute": 3,
            "failure_delay_seconds": 0,
        }
        async with open_site(**settings) as site:
            await site.engine.people.create_user("ann")
            await site.engine.identities.map_identity("ann", "subject-of-ann")
            yield Desk(issuer, site)


async def test_a_browser_signs_in_and_has_a_session_of_its_own(desk: Desk) -> None:
    async with desk.browser() as browser:
        assert (await browser.get("/sign-in/provider")).json() == {"name": "Example", "address": PUBLIC}
        answer = await browser.get("/sign-in", headers=OWN_PAGE)
        location = urlsplit(answer.headers["location"])
        query = parse_qs(location.query)
        assert query["redirect_uri"] == [CALLBACK]
        assert (query["response_type"], query["code_challenge_method"]) == (["code"], ["S256"])
        attempt = answer.headers["set-cookie"]
        assert attempt.startswith(f"{ATTEMPT}=")
        assert all(part in attempt for part in ("HttpOnly", "Path=/", "SameSite=lax", "Secure"))
        assert "Domain" not in attempt
        back = urlencode(desk.issuer.answer(answer.headers["location"]))
        answer = await browser.get(f"{CALLBACK}?{back}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PUBLIC}/console/")
        session, ended_attempt = answer.headers.get_list("set-cookie")
        assert session.startswith("conspectus_session=css_")
        assert all(part in session for part in ("HttpOnly", "SameSite=strict", "Secure"))
        assert "Max-Age=0" in ended_attempt
        me = (await browser.get("/api/v1/me")).json()
        assert (me["name"], me["scopes"]) == ("ann", ["read", "write"])
        actions = [entry.action for entry in (await desk.site.engine.access.list_audit()).entries]
        assert actions[:2] == ["sign_in", "first_sign_in"]


async def test_a_used_answer_and_one_of_another_browser_begin_no_session(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Login CSRF: a page sends the browser of somebody to the callback with a code of the attacker."""
    async with desk.browser() as browser, desk.browser() as victim:
        back = await desk.begin(browser)
        await desk.begin(victim)
        answer = await victim.get(back)
        assert (answer.status_code, answer.headers["location"]) == (303, FAILED)
        assert "reason=state" in caplog.text
        assert "conspectus_session=" not in answer.headers["set-cookie"]
        assert (await browser.get(back)).headers["location"] == f"{PUBLIC}/console/"
        assert (await browser.get(back)).headers["location"] == FAILED
        assert "reason=no_attempt" in caplog.text
        assert await whoami(victim) == 401


async def test_tabs_of_one_browser_sign_in_in_any_order(desk: Desk) -> None:
    async with desk.browser() as browser:
        first, second, third = [await desk.begin(browser) for _ in range(3)]
        for back in (second, first):
            assert (await browser.get(back)).headers["location"] == f"{PUBLIC}/console/"
            assert (await browser.get(back)).headers["location"] == FAILED
        [attempt] = [cookie for cookie in browser.cookies.jar if cookie.name == ATTEMPT]
        assert "." not in (attempt.value or "."), "only the secret of the third tab is left"
        answer = await browser.get(third)
        assert answer.headers["location"] == f"{PUBLIC}/console/"
        assert "Max-Age=0" in answer.headers.get_list("set-cookie")[1]


async def test_a_browser_has_five_sign_ins_at_once(desk: Desk) -> None:
    """More would make its requests too large for a proxy."""
    async with desk.browser() as browser:
        oldest, *others = [await desk.begin(browser) for _ in range(6)]
        assert (await browser.get(oldest)).headers["location"] == FAILED
        for back in others[:2]:
            assert (await browser.get(back)).headers["location"] == f"{PUBLIC}/console/"


async def test_no_parameter_leads_a_browser_elsewhere(desk: Desk) -> None:
    evil = "https://evil.example.org/"
    elsewhere = urlencode(dict.fromkeys(("next", "return_to", "redirect_uri", "url", "back"), evil))
    async with desk.browser() as browser:
        answer = await browser.get(f"/sign-in?{elsewhere}", headers={**OWN_PAGE, "Host": "evil.example.org"})
        assert parse_qs(urlsplit(answer.headers["location"]).query)["redirect_uri"] == [CALLBACK]
        back = f"{CALLBACK}?{urlencode(desk.issuer.answer(answer.headers['location']))}&{elsewhere}"
        assert (await browser.get(back)).headers["location"] == f"{PUBLIC}/console/"
        answer = await browser.get(f"/sign-in/end?{elsewhere}", headers=OWN_PAGE)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        assert query["post_logout_redirect_uri"] == [f"{PUBLIC}/console/"]


@pytest.mark.parametrize("path", ["/sign-in", "/sign-in/end"])
@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://x.y"}]
)
async def test_no_other_page_begins_or_ends_a_sign_in(path: str, headers: dict[str, str], desk: Desk) -> None:
    async with desk.browser() as browser:
        answer = await browser.get(path, headers=headers)
        assert (answer.status_code, answer.headers.get("set-cookie")) == (403, None)


async def test_failed_sign_ins_of_an_address_are_refused_after_too_many(desk: Desk) -> None:
    async with desk.browser() as browser:
        statuses = [(await browser.get("/sign-in/callback?code=guessed")).status_code for _ in range(4)]
        assert statuses == [303, 303, 303, 429]
        assert (await browser.post("/sign-in/back-channel-logout")).status_code == 429


async def test_a_logout_here_leads_to_the_one_at_the_issuer(desk: Desk) -> None:
    async with desk.browser() as browser:
        await desk.sign_in(browser)
        assert (await browser.delete("/api/v1/session", headers=OWN_PAGE)).status_code == 204
        assert await whoami(browser) == 401
        answer = await browser.get("/sign-in/end", headers=OWN_PAGE)
        assert answer.headers["location"].startswith(f"{desk.issuer.url}{END_SESSION}?client_id=console&")


async def test_a_logout_at_the_issuer_ends_the_session_here(desk: Desk) -> None:
    async with desk.browser() as browser, desk.browser() as issuer:
        await desk.sign_in(browser)
        body = {"logout_token": desk.issuer.logout_token(sid="first")}
        answer = await issuer.post("/sign-in/back-channel-logout", data=body)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert await whoami(browser) == 401


@pytest.mark.parametrize("body", [b"", b"logout_token=a.b.c", b"\xff=", b"logout_token=" + b"a" * 20_000])
async def test_a_bad_logout_is_refused_without_a_reason(body: bytes, desk: Desk) -> None:
    async with desk.browser() as issuer:
        answer = await issuer.post("/sign-in/back-channel-logout", content=body)
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid_request"})


async def test_sessions_end_with_their_user_and_identity(desk: Desk) -> None:
    async with desk.browser() as browser:
        await desk.sign_in(browser)
        await desk.site.engine.people.set_user_disabled("ann")
        assert await whoami(browser) == 401
        await desk.site.engine.people.set_user_disabled("ann", disabled=False)
        assert await whoami(browser) == 401
        await desk.sign_in(browser)
        assert await whoami(browser) == 200
        [identity] = await desk.site.engine.identities.list_identities()
        await desk.site.engine.identities.unmap_identity(identity.id)
        assert await whoami(browser) == 401


async def test_keys_and_invitations_log_in_while_the_issuer_is_away(open_site: OpenSite) -> None:
    settings = {"oidc_issuer": "https://127.0.0.1:1", "oidc_audience": AUDIENCE, "oidc_client_id": CLIENT}
    async with open_site(**settings) as site, site.client() as browser:
        answer = await browser.get("http://localhost/sign-in", headers=OWN_PAGE)
        assert answer.headers["location"] == "http://localhost:8642/console/#sign-in=failed"
        key = await site.engine.keys.create_first()
        assert key is not None
        assert (await browser.post("/session", json={"key": key.secret})).status_code == 200
        await site.engine.people.create_user("ida")
        invitation = await site.engine.logins.create_invitation("ida")
        assert (await browser.post("/session", json={"invitation": invitation.token})).status_code == 200


async def test_a_server_without_a_client_has_no_sign_in(site: Site) -> None:
    async with site.client() as browser:
        for path in ("/sign-in", "/sign-in/callback", "/sign-in/end"):
            assert (await browser.get(f"http://localhost{path}")).status_code == 404
        assert (await browser.post("http://localhost/sign-in/back-channel-logout")).status_code == 404
        provider = (await browser.get("http://localhost/sign-in/provider")).json()
        assert provider["name"] is None


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_client_id": CLIENT},
        {"oidc_sign_in_scopes": "profile"},
    ],
)
async def test_settings_with_which_nobody_could_sign_in_are_refused(
    settings: dict[str, str], open_site: OpenSite
) -> None:
    with pytest.raises(InvalidInput, match="oidc_"):
        async with open_site(**settings):
            pass
