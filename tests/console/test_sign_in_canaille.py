"""Sign-in with canaille, a provider of others, in Chromium: who is unknown is mapped in the console."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

import conspectus
from conspectus import connect
from conspectus.errors import InvalidToken
from conspectus.model.access import Principal
from conspectus.settings import Settings
from tests.console.conftest import ROOT, Opened, Site, running_site, themed, violations
from tests.console.test_sign_in import reserve_port

pytestmark = pytest.mark.sources
SCRIPT = ROOT / "tests" / "support" / "canaille_provider.py"
CLIENT = ("conspectus", "a-secret-of-the-tests")
PASSWORD = "correct horse 7 battery"


def find_canaille() -> str:
    """Its Python. The test is skipped where it cannot be had, or fails in `make test-sources`."""
    command = ["bash", str(ROOT / "scripts" / "canaille.sh"), sys.executable]
    script = subprocess.run(command, capture_output=True, text=True, check=False)
    if script.returncode == 0:
        return script.stdout.strip()
    assert "SOURCE_SERVERS" not in os.environ, script.stderr
    pytest.skip(f"canaille cannot be had here: {script.stderr[-200:]}")


@pytest.fixture(scope="module")
def issuer_port() -> int:
    return reserve_port()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, issuer_port: int) -> Iterator[Site]:
    """A server whose people sign in with canaille, if an administrator has mapped them."""
    python, port = find_canaille(), reserve_port()
    address = f"http://127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("signed")
    with conspectus.open(folder) as engine:
        engine.documents.add("The vault code is 4711.", collection="vault", wait=True)
        for name in ("ann", "ben"):
            engine.people.create_user(name)
        ben = engine.people.get_user("ben")
        engine.access.grant("vault", Principal("user", ben.id), "viewer")
    with (folder.parent / "canaille.log").open("wb") as log:
        command = [python, str(SCRIPT), str(issuer_port), address, PASSWORD]
        provider = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    settings = {
        "OIDC_ISSUER": f"http://127.0.0.1:{issuer_port}",
        "OIDC_AUDIENCE": address,
        "OIDC_SCOPES": "*=read",
        "OIDC_CLIENT_ID": CLIENT[0],
        "OIDC_CLIENT_SECRET": CLIENT[1],
        "OIDC_NAME": "Canaille",
        "PUBLIC_ADDRESS": address,
        "LOG_LEVEL": "warning",
    }
    try:
        assert provider.stdout is not None
        assert "ready" in provider.stdout.readline(), (folder.parent / "canaille.log").read_text()
        with running_site(
            folder, "--port", str(port), **{f"CONSPECTUS_{name}": text for name, text in settings.items()}
        ) as site:
            yield site
    finally:
        provider.terminate()
        provider.communicate()


def sign_in(page: Page, name: str) -> None:
    page.get_by_role("button", name="Sign in with Canaille").click()
    page.locator("input[name=login]").fill(name)
    page.get_by_role("button", name="Continue").click()
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("button[value=accept]").click()


def log_in(page: Page, site: Site) -> None:
    page.get_by_label("API key").fill(site.key or "")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()


def list_changes(site: Site) -> list[str]:
    """Changes of identities in the audit log, and sign-ins, oldest first."""
    with connect(site.address, api_key=site.key or "") as owner:
        entries = owner.access.list_audit().entries
    return [
        entry.action for entry in reversed(entries) if "identity" in entry.action or "sign_in" in entry.action
    ]


def test_who_is_unknown_is_mapped_unmapped_and_mapped_again(visit: Opened, signed: Site) -> None:
    page = visit(signed, "/documents?collection=vault")
    sign_in(page, "ben")
    expect(page.get_by_role("alert")).to_contain_text("Signing in did not work.")
    log_in(page, signed)
    page.goto(f"{signed.address}/console/operations?part=identities")
    refused = page.get_by_role("region", name="Refused sign-ins")
    expect(refused.get_by_role("listitem")).to_have_count(1)
    expect(refused).to_contain_text("benhttp://127.0.0.1")
    assert violations(page) == []
    assert themed(page) == []
    refused.get_by_role("button", name="Map ben").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User").select_option("ben")
    dialog.get_by_role("button", name="Map", exact=True).click()
    mapped = page.get_by_role("region", name="Mapped identities")
    expect(mapped.get_by_role("listitem")).to_contain_text("mapped by owner")
    expect(refused).to_have_count(0)
    mapped.get_by_role("button", name="Unmap ben").click()
    page.get_by_role("dialog").get_by_role("button", name="Unmap").click()
    expect(mapped).to_contain_text("Nobody signs in with an identity provider.")
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(mapped.get_by_role("listitem")).to_have_count(1)
    assert violations(page) == []
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{signed.address}/console/documents?collection=vault")
    page.get_by_role("button", name="Sign in with Canaille").click()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    assert page.request.get(f"{signed.address}/api/v1/me").json()["name"] == "ben"
    assert list_changes(signed) == [
        "map_identity", "unmap_identity", "map_identity", "first_sign_in", "sign_in"
    ]  # fmt: skip


def test_a_token_without_an_audience_is_refused_with_the_reason_in_the_log_only(
    signed: Site, issuer_port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of canaille have none, unless it knows for which client."""
    issuer, client = f"http://127.0.0.1:{issuer_port}", ("careless", CLIENT[1])
    form = {"grant_type": "password", "username": "ann", "password": PASSWORD, "scope": "openid profile"}
    token = httpx.post(f"{issuer}/oauth/token", data=form, auth=client).json()["access_token"]
    refusal = httpx.get(f"{signed.address}/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert (refusal.status_code, refusal.json()["code"]) == (401, "invalid_token")
    assert refusal.json()["detail"] == "the token is not valid here"

    async def authenticate() -> None:
        settings = Settings(embedder="none", oidc_issuer=issuer, oidc_audience="any", oidc_scopes="*=read")
        async with conspectus.open(tmp_path, settings=settings) as engine:
            assert engine.sign_ins is not None
            await engine.sign_ins.authenticate(token)

    with ThreadPoolExecutor(1) as pool, pytest.raises(InvalidToken):
        pool.submit(asyncio.run, authenticate()).result(timeout=60)
    assert "token_refused reason=audience" in caplog.text
    assert token not in caplog.text
