"""A secret in every text that any operation takes: masked or refused, it is in no table, file or log."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from conspectus.engine import Engine
from conspectus.model.provisioning import GroupAttributes, UserAttributes
from conspectus.model.text_columns import TEXT_COLUMNS, WRITTEN, columns_of
from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web.chatting import chats
from tests.web.finding import rows_of, tables_with
from tests.web.planting import NOT_PLANTED, PLANTED, Planter
from tests.web.test_purge_oracle import create_accounts

RANDOM = "bA16J7PglOU3shVv5UTG79BG16QmtsL4F28G"
SECRET = re.compile(RANDOM.encode(), re.IGNORECASE)
ACCOUNTS = {"/users", "/groups", "/keys", "/group-claims"}
IN_PLACE = rb"\g<0> ghp_" + RANDOM.encode()
NAMES_WHAT_EXISTS = re.compile('"status": 404|"code": "(not_found|dangling_edges)"')
REFUSED = "here (secret: github pat)"


class SecretPlanter(Planter):
    """Sends each request once for every text in it, with a secret in that text."""

    def is_left_out(self, path: str) -> bool:
        return any(part in path for part in NOT_PLANTED.keys() - ACCOUNTS)

    def special(self, path: str, tag: str) -> dict[str, Any]:
        bodies = {
            "/keys": {"user": "viewer", "expires": "2099-01-01T00:00:00Z"},
            "/group-claims": {"group": "readers", "issuer": "https://login.example.org"},
        }
        return bodies.get(path, super().special(path, tag))

    async def prepare(self) -> None:
        await super().prepare()
        await self.post("/groups", {"name": "readers"})

    async def plant(self) -> None:
        for number, (method, path, operation) in enumerate(self.operations()):
            for kind, body in operation.get("requestBody", {"content": {}})["content"].items():
                request = self.asked(path, kind, body.get("schema", {}), f"zqxn{number}qz")
                request["params"] = self.query(operation, path)
                await self.send_all(method, path, request, number)
        await until(self.has_no_work)

    async def send_all(self, method: str, path: str, request: Mapping[str, Any], number: int) -> None:
        """Send a request with a secret in each text, and each time under new names."""
        for leaf, changed in enumerate(with_secrets(request)):
            fresh = replaced(changed, f"zqxn{number}qz".encode(), f"zqxn{number}l{leaf}qz".encode())
            answer = await self.client.request(method, self.filled(path), **fresh)
            if answer.status_code >= 400 and REFUSED not in answer.text:
                self.refused.append(f"{method} {path} {leaf}: {answer.text}")


def with_secrets(request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the request with a secret in each of its planted texts, also in names of metadata."""
    for path in paths_in(request):
        yield with_secret_at(request, path)


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    match value:
        case str() | bytes() if PLANTED.search(value if isinstance(value, bytes) else value.encode()):
            yield ()
        case Mapping():
            for name, inner in value.items():
                yield from ((name, *path) for path in paths_in(inner))
        case list() | tuple():
            for position, inner in enumerate(value):
                yield from ((position, *path) for path in paths_in(inner))


def with_secret_at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a value with a secret behind the first planted word of the text at the path."""
    match value:
        case bytes():
            return PLANTED.sub(IN_PLACE, value, count=1)
        case str():
            return PLANTED.sub(IN_PLACE, value.encode(), count=1).decode()
        case Mapping():
            return {
                name: with_secret_at(inner, path[1:]) if name == path[0] else inner
                for name, inner in value.items()
            }
    return type(value)(
        with_secret_at(inner, path[1:]) if position == path[0] else inner
        for position, inner in enumerate(value)
    )


def replaced(value: Any, old: bytes, new: bytes) -> Any:
    """Return a request in which one tag stands for another, so that nothing exists already."""
    match value:
        case bytes():
            return value.replace(old, new)
        case str():
            return value.replace(old.decode(), new.decode())
        case Mapping():
            return {replaced(name, old, new): replaced(inner, old, new) for name, inner in value.items()}
        case list() | tuple():
            return type(value)(replaced(inner, old, new) for inner in value)
    return value


@pytest.mark.parametrize("action", ["mask", pytest.param("refuse", marks=pytest.mark.slow)])
async def test_a_secret_in_any_text_of_any_operation_is_nowhere(tmp_path: Path, action: str) -> None:
    wiki = tmp_path / "wiki"
    wiki.mkdir()
    settings = {"fetch_allowed_networks": "127.0.0.0/8", "sensitive": f"secrets={action}"}
    settings["answer_records"] = "all"
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": Answer(b"a page")}))
        model = ScriptedChatModel(["an answer"])
        site = await stack.enter_async_context(chats(tmp_path, model, **settings))
        client = await stack.enter_async_context(site.client(await create_accounts(site)))
        planter = SecretPlanter(client, site.app.openapi(), web.base, str(wiki))
        planter.known["user"] = "viewer"
        await planter.prepare()
        await planter.post("/tasks", {"id": "zqxtaskqz", "title": "a task"})
        await planter.plant()
        assert [line for line in planter.refused if not NAMES_WHAT_EXISTS.search(line)] == []
        assert RANDOM not in site.log.getvalue()
    assert tables_with(tmp_path / "data", SECRET) == {}
    files = [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.search(path.read_bytes())]
    assert files == []


TAGS: Mapping[str, str] = {
    "documents": "metadata",
    "graph_nodes": "properties",
    "graph_edges": "properties",
    "sources": "metadata",
}
"""Tables whose rows say what was found in them, each with the column that has the tags."""


async def test_a_secret_in_any_column_is_tagged_and_found_by_a_scan(tmp_path: Path) -> None:
    """Operations write secrets into most columns; rows of documents, graphs and sources have a tag for it.

    The other columns get theirs by SQL, so that a scan is tried on each.
    """
    wiki, data = tmp_path / "wiki", tmp_path / "data"
    wiki.mkdir()
    settings = {"fetch_allowed_networks": "127.0.0.0/8", "sensitive": "secrets=tag"}
    settings["answer_records"] = "all"
    written = {column for column, rule in TEXT_COLUMNS.items() if rule.screening in WRITTEN}
    scanned: set[str] = set()
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": Answer(b"a page")}))
        site = await stack.enter_async_context(chats(tmp_path, ScriptedChatModel(["an answer"]), **settings))
        client = await stack.enter_async_context(site.client(await create_accounts(site)))
        planter = SecretPlanter(client, site.app.openapi(), web.base, str(wiki))
        planter.known["user"] = "viewer"
        await planter.prepare()
        await planter.post("/tasks", {"id": "zqxtaskqz", "title": "a task"})
        await planter.plant()
        await planter.post("/collections", {"name": "late"})
        (added,) = await planter.post("/collections/late/documents", {"documents": [{"text": "a tide"}]})
        (chunk,) = (await client.get(f"/documents/{added['id']}/chunks")).json()
        await planter.post("/feedback", {"query": "a tide", "used": [chunk["id"]]})
        await provision(site.engine)
        assert "\n".join(untagged_rows(data)) == ""
        planted = {f"{table}.{name}" for table, names in tables_with(data, SECRET).items() for name in names}
        assert len(written - planted) < 12
        fill_columns(data, written - planted, f"ghp_{RANDOM}")
        for collection in await site.engine.collections.list():
            report = await site.engine.maintenance.scan(
                collection=collection.id, categories=["secrets"], limit=1_000
            )
            assert RANDOM.lower() not in str(report).lower()
            scanned |= {position.column for position in report.places}
    assert sorted(written - scanned) == []
    assert scanned - written == {"chunks.text"}


async def provision(engine: Engine) -> None:
    """Make a user and a group of an identity provider."""
    provisioning = engine.make_provisioning()
    await provisioning.create_user(UserAttributes("late", None, active=True))
    await provisioning.create_group(GroupAttributes("late", None, frozenset()))


def fill_columns(folder: Path, columns: set[str], text: str) -> None:
    """Write a text into each of these columns, in all rows of SQLite, as JSON where they have JSON."""
    for path in folder.rglob("*.sqlite"):
        database = sqlite3.connect(path, timeout=30)
        for table, _, name in (column.partition(".") for column in columns):
            as_json = f"CASE WHEN substr(\"{name}\", 1, 1) IN ('{{', '[') THEN json_array(?) ELSE ? END"
            database.execute(f'UPDATE {table} SET "{name}" = {as_json}', (text, text))
        database.commit()
        database.close()


def untagged_rows(folder: Path) -> list[str]:
    """Return the rows with a secret in a column that people write, and without a tag for it.

    A source is tagged for its metadata only; a quarantined document has its tags in what was given.
    """
    untagged = []
    for table, tags in TAGS.items():
        written = [name for name, rule in columns_of(table) if rule.screening in WRITTEN]
        for row in rows_of(folder, table):
            text = row["metadata"] if table == "sources" else " ".join(str(row[name]) for name in written)
            if SECRET.search(text.encode()) and '"sensitive": ["secrets"]' not in row[tags]:
                untagged.append(f"{table}: {text[:200]}")
    return untagged
