"""demo: an example store of a fictitious company."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Group

from conspectus.cli.output import progress, rows_table
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.access import Principal
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.graph import NewEdge, NewNode
from conspectus.model.memory import MEMORY, MemorySelection, Scope
from conspectus.model.records import NewDocument
from conspectus.model.stream_events import NewEvent
from conspectus.model.streams import NewStream
from conspectus.private import make_folder, open_for_writing
from conspectus.text.counts import format_count
from conspectus.web.warmup import freeze_gc

if TYPE_CHECKING:
    from conspectus.ports import Progress
    from conspectus.sync import BlockingEngine

DATA: Final = Path(__file__).with_name("demo_data")
EXAMPLES: Final = DATA / "examples"
"""Files that the guides use."""
MARK: Final = "demo.txt"
"""The file that marks a folder as a demo."""
COMPLETE: Final = "complete"
"""Content of the mark once all data is stored."""
PAGES: Final = "default"
CHAT: Final = "chat"
CAMERAS: Final = "cameras"
COLLECTIONS: Final[Mapping[str, str]] = {
    PAGES: "The handbook of Kestrel, a company that does not exist",
    CHAT: "What is written there",
    CAMERAS: "What its camera sees and hears on a day",
    MEMORY: "What an assistant knows about Ann",
}
PAGE: Final = "=== "
"""The beginning of the line that precedes each page, with its key."""
SOURCES: Final = ("handbook", "product", "operations", "security", "archive")
OPEN_SOURCES: Final = ("handbook", "product")
"""Sources that everyone may read."""
HELPER: Final = Scope("ann", "helper")
"""The scope of the memories."""
FORGOTTEN: Final = "phone"
"""The key of the memory that is deleted."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo: its folder, and the API keys of its users if it was just created."""

    folder: str
    keys: Mapping[str, str]


def demo(
    session: Session,
    *,
    folder: Annotated[Path, typer.Argument(help="Folder to make; it must be empty or a demo.")] = Path(
        "conspectus-demo"
    ),
    examples: Annotated[
        bool, typer.Option("--examples", help="Only write the files of the guides, to the folder examples.")
    ] = False,
) -> None:
    """Make an example store of documents, chats and memories."""
    session.require_here()
    if examples:
        write_examples(session)
        return
    if session.common.data_dir is not None or session.common.collection is not None:
        raise InvalidInput("folder", "is the only thing to name; demo has no --data-dir and no --collection")
    mark = folder / MARK
    if not mark.exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput("folder", f"{folder} is neither empty nor a demo; choose another one")
        make_folder(folder)
        mark.touch()
    keys: dict[str, str] = {}
    if mark.read_text(encoding="utf-8") != COMPLETE:
        with freeze_gc():
            from conspectus import sync
        with sync.open(folder, settings=session.settings) as engine, progress() as bars:
            keys = fill(engine, session.note, bars)
        mark.write_text(COMPLETE, encoding="utf-8")
    if not keys:
        session.note(f"The demo is there. conspectus keys create ann --data-dir {folder} makes a new key.")
    picture = rows_table(("user", "API key (shown once)"), keys.items()) if keys else Group()
    session.show(Demo(str(folder), keys), picture)
    session.note(f"Look at it: conspectus console --data-dir {folder}")


def write_examples(session: Session) -> None:
    """Write the files that guides use to the folder `examples`; files that are there stay as they are."""
    written: list[str] = []
    for source in sorted(path for path in EXAMPLES.rglob("*") if path.is_file()):
        target = Path(EXAMPLES.name, source.relative_to(EXAMPLES))
        if not target.exists():
            make_folder(target.parent)
            with open_for_writing(target) as file:
                file.write(source.read_bytes())
            written.append(target.as_posix())
    session.show(written, "\n".join(written) or f"all files are in {EXAMPLES.name} already")


def fill(engine: "BlockingEngine", tell: Callable[[str], None], bars: "Progress | None") -> dict[str, str]:
    """Store the example data. Stored data is unchanged. Returns the keys of the users."""
    pages: dict[str, str] = {}
    for source in SOURCES:
        documents = list(pages_of(source))
        written = engine.add(documents, source=source)
        pages |= {
            f"{source}/{page.key}": document.id for page, document in zip(documents, written, strict=True)
        }
    tell(f"{format_count(len(pages), 'page')} in {format_count(len(SOURCES), 'source')}")
    messages = [NewMessage(**message) for message in data("messages")]
    engine.channels.add_messages(messages, channel="support", collection=CHAT)
    tell(f"{format_count(len(messages), 'message')} in the channel support")
    fill_stream(engine, tell)
    fill_graph(engine, pages, tell)
    fill_memory(engine, tell)
    for collection, description in COLLECTIONS.items():
        engine.collections.update(collection, description=description)
        engine.documents.wait_until_embedded(collection=collection, progress=bars)
    for collection in (PAGES, CHAT):
        engine.graph.set_entity_extraction(collection=collection)
        engine.graph.wait_until_extracted(collection=collection, progress=bars)
    return fill_people(engine)


def data(name: str) -> Any:
    """Return the content of a data file of the package."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def pages_of(source: str) -> Iterator[NewDocument]:
    """Yield the pages of a source: each starts with a line with its key."""
    for part in (DATA / f"{source}.txt").read_text(encoding="utf-8").split(PAGE)[1:]:
        key, _, text = part.partition("\n")
        title = text.partition("\n")[0].removeprefix("# ")
        yield NewDocument(text.strip(), title, key=key, syntax="markdown")


def fill_stream(engine: "BlockingEngine", tell: Callable[[str], None]) -> None:
    """Store a day of a camera in the lobby."""
    captions = [
        NewCaption(**{**caption, "entities": tuple(caption.get("entities", ()))})
        for caption in data("captions")
    ]
    events = [NewEvent(**{**event, "entities": tuple(event["entities"])}) for event in data("events")]
    start = captions[0].start
    assert isinstance(start, str)
    engine.streams.put(NewStream("lobby", CAMERAS, "Lobby", start_time=start, time_zone="Europe/Berlin"))
    engine.streams.add_captions(captions, stream="lobby", collection=CAMERAS)
    engine.events.add(events, stream="lobby", collection=CAMERAS)
    tell(
        f"{format_count(len(captions), 'caption')} and {format_count(len(events), 'event')}"
        " in the stream lobby"
    )


def fill_graph(engine: "BlockingEngine", pages: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Store who works with which service, with the pages as evidence; one duplicate person is merged."""
    graph = data("graph")
    nodes = [NewNode(**{**node, "aliases": tuple(node.get("aliases", ()))}) for node in graph["nodes"]]
    edges = [NewEdge(**edge) for edge in graph["edges"]]
    engine.graph.add_nodes(nodes)
    engine.graph.add_edges(
        replace(edge, evidence=pages[edge.evidence]) if edge.evidence else edge for edge in edges
    )
    if not engine.graph.list_merges():
        engine.graph.merge_nodes("ann", ["a.berg"])
    tell(f"{format_count(len(nodes), 'node')} and {format_count(len(edges), 'edge')} in the graph")


def fill_memory(engine: "BlockingEngine", tell: Callable[[str], None]) -> None:
    """Store what an assistant learned about a user in months; one memory is deleted."""
    lines = [json.dumps(memory) for memory in data("memories")]
    written = engine.memory.import_lines(lines)
    memories = dict(zip((memory["key"] for memory in data("memories")), written, strict=True))
    receipt = engine.memory.forget(MemorySelection((memories[FORGOTTEN].id,)), scope=HELPER, purge=True)
    tell(
        f"{format_count(len(lines) - receipt.memories, 'memory')} of ann,"
        f" and {receipt.memories} forgotten and purged"
    )


def fill_people(engine: "BlockingEngine") -> dict[str, str]:
    """Create accounts: the owner, ann who manages everything, and bob who may read two sources."""
    owner = engine.keys.create_first() or engine.keys.create("owner")
    stored = {user.name for user in engine.people.list_users()}
    keys = {"owner": owner.secret}
    for user in ("ann", "bob"):
        if user not in stored:
            engine.people.create_user(user)
        keys[user] = engine.keys.create(user, label="demo").secret
    for collection in COLLECTIONS:
        engine.access.grant(collection, Principal("user", "ann"), "manager")
    for source in OPEN_SOURCES:
        engine.access.grant(PAGES, Principal("user", "bob"), "viewer", source=source)
    return keys
