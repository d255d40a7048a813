"""Imports from stores that the packages of mem0, LangGraph, Chroma and Qdrant made."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.support.foreign_environment import stores_python
from tests.support.postgres_server import PostgresProcess

ROOT = Path(__file__).resolve().parents[2]
MAKER = ROOT / "tests" / "foreign_stores.py"
GIVEN = "vectors:4"
MANY = 2_500


class Stores:
    """The stores, and the program that made them and can import them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            "MEM0_TELEMETRY": "False",
            "ANONYMIZED_TELEMETRY": "False",
            "MEM0_DIR": str(folder),
            "CONSPECTUS_EMBEDDER": "none",
        }
        self._log = (folder / "log").open("w")
        self._program = subprocess.Popen(
            [stores_python(), MAKER, folder],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def run(self, *arguments: str, **settings: str) -> str:
        """What a command prints."""
        assert self._program.stdin is not None
        print(json.dumps([settings, *arguments]), file=self._program.stdin, flush=True)
        done = json.loads(self.read_line())
        assert done["code"] == 0, done
        return str(done["out"])

    def import_store(self, data: Path, *arguments: str, embedder: str = "none") -> dict[str, Any]:
        """The report of an import into a data directory."""
        settings = {"CONSPECTUS_PATH": str(data), "CONSPECTUS_EMBEDDER": embedder}
        return dict(json.loads(self.run("import", *arguments, "--json", **settings)))

    def read_line(self) -> str:
        """The next line that the program prints."""
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        assert line, (self.folder / "log").read_text()
        return line

    def close(self) -> None:
        """End the program."""
        self._program.communicate()
        self._log.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    stores = Stores(tmp_path_factory.mktemp("stores"))
    while stores.read_line() != "ready\n":
        pass
    yield stores
    stores.close()


def outcome_counts(report: dict[str, Any]) -> tuple[int, ...]:
    return tuple(report[outcome] for outcome in ("read", "added", "unchanged"))


def vector_counts(report: dict[str, Any]) -> tuple[int, int]:
    return report["vectors_kept"], report["vectors_computed"]


def list_memories(shell: Shell, user: str) -> dict[str, dict[str, Any]]:
    """The memories of a user by their text."""
    memories = shell("memory", "list", "--user", user, "--json").json["memories"]
    return {memory["text"]: memory for memory in memories}


def list_documents(shell: Shell, source: str) -> dict[str, dict[str, Any]]:
    """The documents of a source by their key."""
    documents = shell("list", "--source", source, "--json").json["documents"]
    return {document["key"]: document for document in documents}


@pytest.mark.parametrize("folder", ["mem0", "mem0-chroma"])
def test_memories_of_mem0_keep_scope_times_metadata_and_former_texts(
    folder: str, stores: Stores, shell: Shell
) -> None:
    arguments = ("mem0", f"{folder}/vectors", "--history", f"{folder}/history.db", "--embedder", "vectors:4")
    report = stores.import_store(shell.folder / "data", *arguments, embedder=GIVEN)
    assert (outcome_counts(report), vector_counts(report)) == ((3, 2, 0), (2, 0))
    assert {name: skipped["count"] for name, skipped in report["skipped"].items()} == {
        "memories that were deleted in mem0": 1
    }
    assert report["no_place"] == {"hash": 2, "text_lemmatized": 2}
    assert outcome_counts(stores.import_store(shell.folder / "data", *arguments, embedder=GIVEN)) == (3, 0, 2)
    ann = list_memories(shell, "ann")["Ann likes green tea."]
    assert ann["scope"] == {"user": "ann", "agent": "waiter", "conversation": "monday"}
    assert ann["metadata"] == {"topic": "food", "stars": 4}
    assert ann["document"]["status"] == "embedded"
    versions = shell("memory", "versions", ann["id"], "--user", "ann", "--json").json
    assert [version["text"] for version in versions] == ["Ann likes tea.", "Ann likes green tea."]
    with sqlite3.connect(stores.folder / folder / "history.db") as history:
        rows = dict(history.execute("SELECT new_memory, COALESCE(updated_at, created_at) FROM history"))
    assert [version["known_from"] for version in versions] == [rows[version["text"]] for version in versions]
    assert list_memories(shell, "bob")["Bob's locker is 12."]["valid_until"] == "3000-01-01T00:00:00+00:00"


def test_items_of_langgraph_become_memories_of_the_scope_in_their_namespace(
    stores: Stores, shell: Shell
) -> None:
    arguments = ("import", "langgraph", stores.folder / "langgraph.sqlite", "--json")
    report = shell(*arguments, "--namespace", "memories.{user}").json
    assert outcome_counts(report) == (5, 3, 0)
    others = {"count": 2, "names": ["attacks.ann/a", "profiles.eu.ann/p"]}
    assert report["skipped"] == {"items in other namespaces than --namespace says": others}
    rest = shell(*arguments, "--namespace", "profiles.*.{user}", "--agent", "profiler").json
    assert (outcome_counts(rest), rest["no_place"]) == ((5, 1, 0), {"expires_at": 1})
    ann = list_memories(shell, "ann")
    assert ann["Ann likes tea."]["metadata"] == {"namespace": ["memories", "ann"], "stars": 4}
    assert ann["Ann rides a bike."]["metadata"]["kind"] == "Memory"
    assert ann["Ann lives in Köln."]["scope"]["agent"] == "profiler"
    assert [json.loads(text) for text in list_memories(shell, "bob")] == [{"color": "red", "size": 12}]
    with sqlite3.connect(stores.folder / "langgraph.sqlite") as store:
        [(at,)] = store.execute("SELECT created_at FROM store WHERE key = 'tea'")
    assert ann["Ann likes tea."]["known_from"] == f"{at.replace(' ', 'T')}+00:00"
    assert outcome_counts(shell(*arguments, "--namespace", "memories.{user}").json) == (5, 0, 3)


def test_a_quarantined_item_is_named_and_added_once(stores: Stores, shell: Shell) -> None:
    arguments = ("import", "langgraph", stores.folder / "langgraph.sqlite", "--namespace", "attacks.{user}")
    review = "review: conspectus quarantine list --collection memory"
    remarks = {f"quarantined, as it matches the pattern override; {review}": 1}
    for expected in ((5, 1, 0), (5, 0, 1)):
        report = shell(*arguments, "--json").json
        assert (outcome_counts(report), report["remarks"]) == (expected, remarks)


def test_a_table_that_lacks_columns_is_an_error_with_their_names(shell: Shell) -> None:
    with closing(sqlite3.connect(shell.folder / "other.sqlite")) as store:
        store.execute("CREATE TABLE store AS SELECT 'a' AS prefix, 'b' AS key, '{}' AS payload")
        store.commit()
    done = shell("import", "langgraph", shell.folder / "other.sqlite")
    assert (done.code, "`store` has no created_at, updated_at, value" in done.err) == (2, True)


def test_a_database_that_is_no_history_of_mem0_is_named(stores: Stores, shell: Shell) -> None:
    other = stores.folder / "langgraph.sqlite"
    done = shell("import", "mem0", stores.folder / "mem0" / "vectors", "--history", other)
    assert (done.code, f"{other}: is no history of mem0" in done.err) == (2, True)


def test_items_of_langgraph_in_postgresql_keep_the_vectors_of_their_texts(
    stores: Stores, shell: Shell, postgres: PostgresProcess
) -> None:
    with postgres.fresh(empty=True) as url:
        stores.run("postgresql", url)
        arguments = ("import", "langgraph", url, "--json", "--embedder", "vectors:4", "--namespace")
        report = shell(*arguments, "memories.{user}", "--no-wait", CONSPECTUS_EMBEDDER=GIVEN).json
        assert (outcome_counts(report), vector_counts(report)) == ((5, 3, 0), (1, 0))
        assert outcome_counts(
            shell(*arguments, "memories.{user}", "--no-wait", CONSPECTUS_EMBEDDER=GIVEN).json
        ) == (
            5,
            0,
            3,
        )
    assert set(list_memories(shell, "ann")) == {"Ann likes tea.", "Ann rides a bike."}


def test_documents_of_chroma_keep_ids_metadata_and_vectors_of_the_same_model(
    stores: Stores, shell: Shell
) -> None:
    data, arguments = shell.folder / "data", ("chroma", "chroma", "--embedder", "vectors:4")
    report = stores.import_store(data, *arguments, embedder=GIVEN)
    assert (outcome_counts(report), vector_counts(report)) == ((4, 3, 0), (3, 0))
    assert report["skipped"] == {"records without text": {"count": 1, "names": ["bare"]}}
    assert report["no_place"] == {"metadata of a collection": 1}
    again = stores.import_store(data, *arguments, embedder=GIVEN)
    assert (outcome_counts(again), vector_counts(again)) == ((4, 0, 3), (0, 0))
    notes = list_documents(shell, "chroma/notes")
    assert {key: document["metadata"] for key, document in notes.items()} == {
        "one": {"page": 3, "draft": True},
        "two": {"page": 4},
    }
    assert [document["status"] for document in notes.values()] == ["embedded", "embedded"]
    assert set(list_documents(shell, "chroma/plain")) == {"one"}


DELETE_FROM_CHROMA = """
import sys
import chromadb

chromadb.PersistentClient(sys.argv[1]).get_collection("notes").delete(ids=["two"])
"""


def test_documents_that_are_gone_from_chroma_are_kept_and_named_until_pruned(
    stores: Stores, shell: Shell
) -> None:
    copy = shutil.copytree(stores.folder / "chroma", shell.folder / "chroma")
    data, arguments = shell.folder / "data", ("chroma", str(copy))
    assert stores.import_store(data, *arguments)["missing"] == {}
    shell("add", "-", "--source", "other", typed="A text of our own.")
    subprocess.run([stores_python(), "-c", DELETE_FROM_CHROMA, copy], check=True)
    missing = {"chroma/notes": {"count": 1, "names": ["two"]}}
    for options in ((), ("--dry-run",), ("--dry-run", "--prune")):
        report = stores.import_store(data, *arguments, *options)
        assert (report["missing"], report["pruned"]) == (missing, 0)
        assert set(list_documents(shell, "chroma/notes")) == {"one", "two"}
    pruning = stores.import_store(data, *arguments, "--prune")
    assert (pruning["missing"], pruning["pruned"], pruning["unchanged"]) == ({}, 1, 2)
    assert set(list_documents(shell, "chroma/notes")) == {"one"}
    assert set(list_documents(shell, "chroma/plain")) == {"one"} and list_documents(shell, "other")


def test_an_import_leaves_the_files_of_chroma_as_they_are(stores: Stores, shell: Shell) -> None:
    def read_files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (stores.folder / "chroma").rglob("*") if path.is_file()}

    before = read_files()
    stores.import_store(shell.folder / "data", "chroma", "chroma")
    assert read_files() == before


def test_vectors_of_another_model_than_that_of_the_collection_are_computed_again(
    stores: Stores, shell: Shell
) -> None:
    data = shell.folder / "data"
    report = stores.import_store(data, "chroma", "chroma", "--name", "notes", embedder="minilm")
    assert (outcome_counts(report), vector_counts(report)) == ((3, 2, 0), (0, 2))
    assert [document["status"] for document in list_documents(shell, "chroma/notes").values()] == [
        "embedded"
    ] * 2
    results = shell("search", "when do we ship?", "--json", CONSPECTUS_EMBEDDER="minilm").json
    assert results["hits"][0]["chunk"]["text"] == "We deploy on Tuesdays."


def test_a_folder_of_qdrant_becomes_documents(stores: Stores, shell: Shell) -> None:
    data, arguments = shell.folder / "data", ("qdrant", "qdrant", "--embedder", "vectors:4")
    report = stores.import_store(data, *arguments, embedder=GIVEN)
    assert (outcome_counts(report), vector_counts(report)) == ((4, 3, 0), (3, 0))
    assert report["skipped"] == {"records without text": {"count": 1, "names": ["3"]}}
    assert report["no_place"] == {"vector 'words' that is not dense": 1}
    pages = list_documents(shell, "qdrant/pages")
    assert {key: document["metadata"] for key, document in pages.items()} == {
        "1": {"page": 3},
        "2": {"page": 4},
    }
    assert outcome_counts(stores.import_store(data, *arguments, embedder=GIVEN)) == (4, 0, 3)


class Qdrant(BaseHTTPRequestHandler):
    """Answers as a server of Qdrant does, with one point on each page."""

    keys: tuple[str | None, ...] = ()

    def do_GET(self) -> None:
        type(self).keys += (self.headers["api-key"],)
        self._answer({"collections": [{"name": "pages"}]} if self.path == "/collections" else {})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = request.get("offset") or 1
        point = {"id": number, "payload": {"text": f"Text {number}."}, "vector": [1.0, 2, 3, number]}
        self._answer({"points": [point], "next_page_offset": number + 1 if number < 3 else None})

    def _answer(self, result: object) -> None:
        body = json.dumps({"result": result, "status": "ok", "time": 0.1}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_server_of_qdrant_is_read_page_by_page_with_its_key(stores: Stores, shell: Shell) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Qdrant)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    keyed = {"QDRANT_API_KEY": "secret", "CONSPECTUS_EMBEDDER": "none"}
    report = json.loads(
        stores.run("import", "qdrant", url, "--json", CONSPECTUS_PATH=str(shell.folder / "data"), **keyed)
    )
    server.shutdown()
    server.server_close()
    assert (outcome_counts(report), set(list_documents(shell, "qdrant/pages"))) == (
        (3, 3, 0),
        {"1", "2", "3"},
    )
    assert "secret" in Qdrant.keys


def test_an_import_that_was_killed_is_completed_by_the_next(stores: Stores, shell: Shell) -> None:
    database = shell.folder / "many.sqlite"
    stores.run("many", str(database), str(MANY))
    data = shell.folder / "data"
    environment = {**os.environ, "CONSPECTUS_PATH": str(data), "CONSPECTUS_EMBEDDER": "none"}
    command = [Path(sys.executable).parent / "conspectus", "import", "langgraph", database]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as running:
        while not (stored := count_stored(data)) and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
    stored = count_stored(data)
    assert 0 < stored < MANY
    assert outcome_counts(shell("import", "langgraph", database, "--json").json) == (
        MANY,
        MANY - stored,
        stored,
    )
    assert shell("memory", "stats", "--json").json["memories"] == MANY


def count_stored(data: Path) -> int:
    """The number of memories that are stored; none before there is a store."""
    try:
        with sqlite3.connect(f"file:{data / 'records.sqlite'}?mode=ro", uri=True) as records:
            return int(records.execute("SELECT COUNT(*) FROM documents").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [("chroma", "no chroma.sqlite3"), ("qdrant", "no meta.json"), ("langgraph", "is no file")],
)
def test_a_place_without_a_store_is_named(kind: str, message: str, shell: Shell) -> None:
    done = shell("import", kind, shell.folder / "nowhere")
    assert (done.code, message in done.err) == (2, True)


def test_a_missing_package_is_named_with_the_line_that_installs_it(stores: Stores, shell: Shell) -> None:
    done = shell("import", "chroma", stores.folder / "chroma")
    assert "this needs chromadb: pip install chromadb" in done.err
