"""Every connector, held to the contract."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from tests.support.in_memory_wiki import MemoryConnector, MemoryWiki
from tests.support.mediawiki_server import WikiSite
from tests.support.web_server import ScriptedServer

from conspectus.ports.connectors import Connector
from conspectus.sources.connectors.git_repository import GitRepository, Repository
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.sources.connectors.mediawiki import MediaWiki
from conspectus.sources.connectors.mediawiki_api import MediaWikiApi
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits
from conspectus.testing.connectors import (
    ConnectorProperties,
    HttpGate,
    ListingProperties,
    PageStore,
    open_gate,
)

BATCH = 2
MAX_EXAMPLE_LINES = 200
ALONE = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
needs_git = pytest.mark.skipif(
    shutil.which("git") is None and not os.environ.get("CI"), reason="git is not installed"
)


class WikiInMemory(MemoryWiki):
    def connect(self) -> Connector:
        return MemoryConnector(self, batch=BATCH)


@dataclass
class Folder:
    """A folder on disk; pages are files `SPACE/NAME.md`."""

    root: Path
    kind = "markdown"
    credentials: ClassVar[dict[str, str]] = {}

    @property
    def options(self) -> dict[str, str]:
        return {"path": str(self.root)}

    async def put(self, space: str, name: str, text: str) -> None:
        self.file(space, name).parent.mkdir(parents=True, exist_ok=True)
        self.file(space, name).write_text(text, encoding="utf-8")

    async def delete(self, space: str, name: str) -> None:
        self.file(space, name).unlink()

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        self.file(to_space, to_name).parent.mkdir(parents=True, exist_ok=True)
        self.file(space, name).rename(self.file(to_space, to_name))

    async def remove_space(self, space: str) -> None:
        shutil.rmtree(self.root / space)

    def connect(self) -> Connector:
        return MarkdownFolder(self.root, batch=BATCH)

    def file(self, space: str, name: str) -> Path:
        return self.root / space / f"{name}.md"


@dataclass
class GitFolder(Folder):
    """A repository with a working tree, a commit for each change."""

    copy: Path
    kind = "git"

    @property
    def options(self) -> dict[str, str]:
        return {"address": str(self.root)}

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    async def put(self, space: str, name: str, text: str) -> None:
        await super().put(space, name, text)
        self.commit()

    async def delete(self, space: str, name: str) -> None:
        await super().delete(space, name)
        self.commit()

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        await super().move(space, name, to_space=to_space, to_name=to_name)
        self.commit()

    async def remove_space(self, space: str) -> None:
        await super().remove_space(space)
        self.commit()

    def connect(self) -> Connector:
        return GitRepository(Repository(str(self.root)), self.copy, batch=BATCH)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")

    def git(self, *arguments: str) -> None:
        name = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
        subprocess.run(["git", "-C", str(self.root), *name, *arguments], check=True, env=ALONE)


class ServedWiki(WikiSite):
    """A wiki behind a gate, asked through the fetcher that guards addresses."""

    kind = "mediawiki"
    credentials: ClassVar[dict[str, str]] = {}
    api: MediaWikiApi
    gate: HttpGate

    @property
    def options(self) -> dict[str, str]:
        return {"address": self.api.address}

    @property
    def requests(self) -> int:
        return self.gate.requests

    def stop_after(self, requests: int | None) -> None:
        self.gate.stop_after(requests)

    def connect(self) -> Connector:
        return MediaWiki(self.api, batch=BATCH)


@pytest.fixture
def memory() -> PageStore:
    return WikiInMemory()


@pytest.fixture
def folder(tmp_path: Path) -> PageStore:
    (tmp_path / "folder").mkdir()
    return Folder(tmp_path / "folder")


@pytest.fixture
def repository(tmp_path: Path) -> PageStore:
    return GitFolder(tmp_path / "repository", tmp_path / "copy")


@pytest.fixture
async def wiki() -> AsyncIterator[PageStore]:
    wiki = ServedWiki()
    fetcher = WebFetcher(FetchLimits(allow=("127.0.0.1",)))
    async with ScriptedServer({"/api.php": wiki.answer}) as server:
        port = urlsplit(server.base).port
        assert port is not None
        async with open_gate(port) as wiki.gate:
            wiki.api = MediaWikiApi(fetcher, f"{wiki.gate.address}/api.php")
            yield wiki
            await fetcher.close()


class TestMemory(ListingProperties):
    server = "memory"


class TestMarkdownFolder(ConnectorProperties):
    server = "folder"


@needs_git
class TestGitRepository(ConnectorProperties):
    server = "repository"


class TestMediaWiki(ConnectorProperties):
    server = "wiki"


def load_guide() -> dict[str, Any]:
    """Run the code of the guide, both files as one module `notes_connector`. Returns its names."""
    page = (Path(__file__).parents[2] / "docs/guides/write-a-connector.md").read_text(encoding="utf-8")
    connector, tests = re.findall(r"```py(?:thon)?\n(# \w+\.py\n.*?)```", page, re.DOTALL)
    assert max(len(block.splitlines()) for block in (connector, tests)) <= MAX_EXAMPLE_LINES
    module = ModuleType("notes_connector")
    for block in (connector, tests.replace("from notes_connector import NotesConnector\n", "")):
        exec(compile(block, "write-a-connector.md", "exec"), module.__dict__)
    sys.modules[module.__name__] = module  # An entry point names it.
    return module.__dict__


GUIDE = load_guide()
notes = GUIDE["notes"]


class TestGuide(GUIDE["TestNotesConnector"]):  # type: ignore[misc]
    """The connector that the guide for packages writes."""
