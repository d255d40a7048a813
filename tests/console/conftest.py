"""Pages of the console in a real Chromium, on a real server with real text."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

import conspectus

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
BUILT = ROOT / "src" / "conspectus" / "web" / "console" / "index.html"
SLOWEST = 30_000
"""Milliseconds until a page must show what is expected."""
FAILED_REQUEST = "Failed to load resource"
SCHEMES = ("light", "dark")
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 360, "height": 780}
WIDTHS = (pytest.param(False, id="wide"), pytest.param(True, id="narrow", marks=pytest.mark.slow))
"""Whether a page is narrow: of most pages in `make bench` alone."""


@dataclass(frozen=True)
class Site:
    """A server: its address, and the key of its owner (None where it needs none)."""

    address: str
    key: str | None


def read_site(printed: TextIO) -> Site:
    """The site of a server, which it prints as one JSON object in several lines."""
    lines = ""
    for line in printed:
        lines += line
        with suppress(ValueError):
            opened = json.loads(lines)
            return Site(opened["address"], opened.get("key"))
    raise AssertionError("the server ended")


@contextmanager
def running_site(folder: Path, *options: str, **variables: str) -> Iterator[Site]:
    """A server of the store in `folder` that runs for the block, with these variables of the environment."""
    usual = {"CONSPECTUS_LOG_LEVEL": "critical", "CONSPECTUS_PATH": str(folder)}
    environment = {**os.environ, **usual, **variables}
    command = ["conspectus", "serve", "--port", "0", "--json", *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield read_site(server.stdout)
        finally:
            server.terminate()
            server.communicate()
    assert server.returncode == 0


@pytest.fixture(scope="session", autouse=True)
def commands(preloaded: Path) -> Iterator[None]:
    """Let `conspectus` be a fork of a process that has loaded it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(preloaded), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, found by its path. Skips the test where it is missing, but not under CI."""
    program = shutil.which("chromium")
    if program is None and os.environ.get("CI") != "true":
        pytest.skip("Chromium is not installed")
    assert program is not None, "install Debian's package chromium"
    assert BUILT.exists(), "build the console: make console"
    # The tests of other folders run beside these, and have precedence.
    expect.set_options(timeout=SLOWEST)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Pages of this project in the collection `docs`, in two sources, on a server that needs no key."""
    folder = tmp_path_factory.mktemp("docs")
    names = (
        *("get-started/install", "guides/chat", "guides/documents", "guides/memory", "guides/sync"),
        *("guides/team-chat", "reference/cli"),
    )
    with conspectus.open(folder) as engine:
        handbook = [ROOT / "docs" / f"{name}.md" for name in names]
        engine.documents.add_files(handbook, collection="docs", source="handbook")
        engine.documents.add_files(
            [ROOT / "docs" / "operate" / "backup.md"], collection="docs", source="runbooks"
        )
        engine.documents.wait_until_embedded(collection="docs")
    with running_site(folder, "--no-auth") as running:
        yield running


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose store is empty; it needs no key."""
    with running_site(tmp_path_factory.mktemp("empty"), "--no-auth") as running:
        yield running


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that needs a key."""
    with running_site(tmp_path_factory.mktemp("locked")) as running:
        yield running


@dataclass(frozen=True)
class Example:
    """A directory with the example store, and the keys of its people."""

    folder: Path
    keys: Mapping[str, str]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The example store, from which others are copied."""
    folder = tmp_path_factory.mktemp("prepared")
    command = ["conspectus", "demo", folder, "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    return Example(folder, json.loads(printed.stdout)["keys"])


@pytest.fixture(scope="session")
def example(prepared: Example) -> Iterator[Site]:
    """The example store, which no test changes."""
    with running_site(prepared.folder) as site:
        yield replace(site, key=prepared.keys["owner"])


@pytest.fixture
def changeable(prepared: Example, tmp_path: Path) -> Iterator[Site]:
    """An example store that the test may change."""
    with running_site(shutil.copytree(prepared.folder, tmp_path / "changeable")) as site:
        yield replace(site, key=prepared.keys["owner"])


Opened = Callable[..., Page]


def fault_of(message: ConsoleMessage) -> list[str]:
    """The text of an error or a warning; a refused request is no fault of the page."""
    expected = FAILED_REQUEST in message.text
    return [] if expected or message.type not in {"error", "warning"} else [message.text]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Opened]:
    """Opens pages. At the end none may have had an error, or broken the Content-Security-Policy."""
    faults: list[str] = []
    contexts = []

    def opened(site: Site, path: str, *, narrow: bool = False, key: str | None = None) -> Page:
        context = browser.new_context(viewport=NARROW if narrow else WIDE, reduced_motion="reduce")
        contexts.append(context)
        if key is not None:
            origin = {"Origin": site.address}
            assert context.request.post(
                f"{site.address}/api/v1/session", data={"key": key}, headers=origin
            ).ok
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.extend(fault_of(message)))
        page.goto(f"{site.address}/console{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def violations(page: Page) -> list[str]:
    """What axe-core finds in the page, in both themes."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    offences = []
    for _ in SCHEMES:
        offences += found_by_axe(page)
        page.keyboard.press("t")
    return offences


def found_by_axe(page: Page) -> list[str]:
    # All that axe looked at would take the page longer to send than to look at.
    faults = page.evaluate("axe.run({resultTypes: ['violations']}).then(report => report.violations)")
    return [f"{fault['id']}: {node['html'][:200]}" for fault in faults for node in fault["nodes"]]


def themed(page: Page) -> list[str]:
    """What axe-core finds in a page that has no keys, in both themes."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    offences = []
    for scheme in SCHEMES:
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", scheme)
        offences += found_by_axe(page)
    return offences


def scrolls_sideways(page: Page) -> bool:
    """Whether the page is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
