"""Every connector, held to the contract."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from conspectus.ports.web import Connector
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.testing.connector_contract import ConnectorContract, Place
from conspectus.testing.memory_wiki import MemoryConnector, MemoryWiki

BATCH = 2


class WikiInMemory(MemoryWiki):
    def connect(self) -> Connector:
        return MemoryConnector(self, batch=BATCH)


@dataclass
class Folder:
    """A folder on disk; pages are files `SPACE/NAME.md`."""

    root: Path

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


class TestMemory(ConnectorContract):
    @pytest.fixture
    def place(self) -> Place:
        return WikiInMemory()


class TestMarkdownFolder(ConnectorContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Folder(tmp_path)
