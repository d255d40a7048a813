"""A secret in every text that any operation takes: masked or refused, it is in no table, file or log."""

import re
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web.chatting import chats
from tests.web.finding import tables_with
from tests.web.planting import NOT_PLANTED, PLANTED, Planter
from tests.web.test_purge_oracle import with_accounts

RANDOM = "bA16J7PglOU3shVv5UTG79BG16QmtsL4F28G"
SECRET = re.compile(RANDOM.encode(), re.IGNORECASE)
ACCOUNTS = {"/users", "/groups", "/keys"}
IN_PLACE = rb"\g<0> ghp_" + RANDOM.encode()
NAMES_WHAT_EXISTS = re.compile('"status": 404|"code": "(not_found|dangling_edges)"')
REFUSED = "here (secret: github pat)"


class SecretPlanter(Planter):
    """Sends each request once for every text in it, with a secret in that text."""

    def is_left_out(self, path: str) -> bool:
        return any(part in path for part in NOT_PLANTED.keys() - ACCOUNTS)

    def special(self, path: str, tag: str) -> dict[str, Any]:
        mine = {"user": "viewer", "expires": "2099-01-01T00:00:00Z"}
        return mine if path == "/keys" else super().special(path, tag)

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
        yield at(request, path)


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


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a value with a secret behind the first planted word of the text at the path."""
    match value:
        case bytes():
            return PLANTED.sub(IN_PLACE, value, count=1)
        case str():
            return PLANTED.sub(IN_PLACE, value.encode(), count=1).decode()
        case Mapping():
            return {name: at(inner, path[1:]) if name == path[0] else inner for name, inner in value.items()}
    return type(value)(
        at(inner, path[1:]) if place == path[0] else inner for place, inner in enumerate(value)
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
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": Answer(b"a page")}))
        model = ScriptedChatModel(["an answer"])
        site = await stack.enter_async_context(chats(tmp_path, model, **settings))
        client = await stack.enter_async_context(site.client(await with_accounts(site)))
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
