"""Random histories of a folder and of a wiki, followed by someone who is killed now and then."""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.repetitions import tries
from tests.support.mediawiki_server import WikiSite
from tests.support.web_server import ScriptedServer

from conspectus.ports.connectors import Connector
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.sources.connectors.mediawiki import MediaWiki
from conspectus.sources.connectors.mediawiki_api import MediaWikiApi
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits
from conspectus.testing.connectors import Copy, PageStore

SPACES, NAMES = st.sampled_from(["One", "Two", "Three"]), st.sampled_from(["index", "a", "b", "c"])
TEXTS = st.sampled_from(["", "alpha", "beta", "gamma"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), SPACES, NAMES, TEXTS),
        st.tuples(st.just("delete"), SPACES, NAMES),
        st.tuples(st.just("move"), SPACES, NAMES, SPACES, NAMES),
        st.tuples(st.just("remove_space"), SPACES),
        st.tuples(st.just("follow"), st.integers(1, 4)),
    ),
    max_size=30,
)
Pages = dict[tuple[str, str], str]


@dataclass
class Folder:
    """A folder on disk; pages are files `SPACE/NAME.md`."""

    root: Path

    async def put(self, space: str, name: str, text: str) -> None:
        self.file(space, name).parent.mkdir(exist_ok=True)
        self.file(space, name).write_text(text)

    async def delete(self, space: str, name: str) -> None:
        self.file(space, name).unlink()

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        self.file(to_space, to_name).parent.mkdir(exist_ok=True)
        self.file(space, name).rename(self.file(to_space, to_name))

    async def remove_space(self, space: str) -> None:
        shutil.rmtree(self.root / space)

    def connect(self) -> Connector:
        return MarkdownFolder(self.root, batch=2)

    def file(self, space: str, name: str) -> Path:
        return self.root / space / f"{name}.md"


class ServedWiki(WikiSite):
    api: MediaWikiApi

    def connect(self) -> Connector:
        return MediaWiki(self.api, batch=2)


async def perform_step(step: tuple, store: PageStore, pages: Pages, copy: Copy) -> None:
    """One step of a history, if it can be taken, in the place and in the plain model of it."""
    match step:
        case ("put", space, name, text):
            await store.put(space, name, text)
            pages[space, name] = text
        case ("delete", space, name) if (space, name) in pages:
            await store.delete(space, name)
            del pages[space, name]
        case ("move", space, name, to_space, to_name) if (space, name) in pages:
            if (to_space, to_name) not in pages:
                await store.move(space, name, to_space=to_space, to_name=to_name)
                pages[to_space, to_name] = pages.pop((space, name))
        case ("remove_space", space) if any(page_space == space for page_space, _ in pages):
            await store.remove_space(space)
            for page in [page for page in pages if page[0] == space]:
                del pages[page]
        case ("follow", batches):
            await copy.follow(batches=batches)


async def follow_history(steps: list[tuple], store: PageStore) -> None:
    pages: Pages = {}
    copy = Copy(store)
    for step in steps:
        await perform_step(step, store, pages, copy)
    await copy.follow()
    await copy.follow()
    expected: dict[str, list[str]] = {}
    for (space, _), text in pages.items():
        expected.setdefault(space, []).append(text)
    assert copy.texts() == {space: sorted(texts) for space, texts in expected.items()}
    assert all(not report.entries and not report.gone for report in await copy.follow())


@settings(max_examples=tries(150))
@given(STEPS)
def test_a_folder_is_followed_through_any_history(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as root:
        asyncio.run(follow_history(steps, Folder(Path(root))))


@settings(max_examples=tries(60))
@given(STEPS, st.booleans())
@example([("put", "One", "a", "x"), ("follow", 1), ("remove_space", "One"), ("put", "One", "a", "x")], False)
def test_a_wiki_is_followed_through_any_history(steps: list[tuple], leaves_redirects: bool) -> None:
    async def run() -> None:
        wiki = ServedWiki(leaves_redirects=leaves_redirects)
        fetcher = WebFetcher(FetchLimits(allow=("127.0.0.1",)))
        async with ScriptedServer({"/api.php": wiki.answer}) as server:
            wiki.api = MediaWikiApi(fetcher, f"{server.base}/api.php")
            await follow_history(steps, wiki)
            await fetcher.close()

    asyncio.run(run())
