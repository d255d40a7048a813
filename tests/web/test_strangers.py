"""Ids that lead nowhere: an id that one may not see is answered like one that was made up, on every route."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx

from conspectus.model.ids import is_uuid
from conspectus.testing.chat_models import ScriptedChatModel
from tests.web.conftest import OpenSite, peopled
from tests.web.operations import READS, WRITES, Request, World, filled, named

EVERY: Final = WRITES | READS
FRESH: Final = re.compile(r"new-\d+")
PATIENCE: Final = 20
CHOSEN: Final = frozenset(
    {
        ("PUT /tasks/{task}", "task"),
        ("PUT /tasks/{task}/attachments/{attachment}", "attachment"),
        ("POST /graphs/{graph}/edges", "node"),
    }
)
"""What the caller names: a task and an attachment are made by a PUT; edges to no node are invalid."""
NOTHING: Final = re.compile(r'\{("\w+":(0|false|\[\]),?)+\}')
"""The receipt of a deletion that found nothing."""


def made_up_value(value: Any) -> Any:
    """Another id of the same form, which nothing has."""
    if isinstance(value, int):
        return value + 1_000_000
    if is_uuid(value):
        return f"{value[:-4]}{int(value[-4:], 16) ^ 0xFFFF:04x}"
    return f"{value}-made-up"


def names_in(label: str) -> list[str]:
    """The placeholders of an operation that stand for ids."""
    placeholders = re.findall(r"\{(\w+)\}", label) + named(EVERY[label])
    return [name for name in dict.fromkeys(placeholders) if name != "fresh"]


async def visible_answer(
    request: Request, client: httpx.AsyncClient, ids: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The status, the body without ids, and the names of the headers of an answer."""
    async with asyncio.timeout(PATIENCE):
        answer = await request.sent(client)
    body = answer.text
    for name, value in ids.items():
        body = body.replace(str(value), f"<{name}>")
    return answer.status_code, FRESH.sub("<fresh>", body), sorted(answer.headers)


async def test_a_stranger_cannot_tell_what_exists(open_site: OpenSite) -> None:
    answers = {}
    async with open_site(chat_model=ScriptedChatModel()) as site, peopled(site) as people:
        for label in filter(names_in, EVERY):
            world = World(people.owner)
            await world.request(label, EVERY[label])
            fake = {name: made_up_value(value) for name, value in world.known.items() if value is not None}
            real = await visible_answer(filled(label, EVERY[label], world.known), people.bob, world.known)
            answers[label] = (real, await visible_answer(filled(label, EVERY[label], fake), people.bob, fake))
    assert {label: both for label, both in answers.items() if both[0] != both[1]} == {}


async def request_missing(label: str, name: str, client: httpx.AsyncClient) -> httpx.Response:
    """The answer to a request in which one thing does not exist."""
    world = World(client)
    await world.request(label, WRITES[label])
    ids = {**world.known, name: made_up_value(world.known[name])}
    return await filled(label, WRITES[label], ids).sent(client)


async def test_a_write_to_what_does_not_exist_is_not_found(open_site: OpenSite) -> None:
    """But ids of tasks and attachments are the caller's, and deletions count what they found: nothing."""
    async with open_site(chat_model=ScriptedChatModel()) as site, peopled(site) as people:
        answers = {
            (label, name): await request_missing(label, name, people.owner)
            for label in WRITES
            for name in names_in(label)
            if (label, name) not in CHOSEN
        }
        names = [collection["name"] for collection in (await people.owner.get("/collections")).json()]
    done = {
        label_and_name: answer.text for label_and_name, answer in answers.items() if answer.status_code != 404
    }
    assert {
        label_and_name: text for label_and_name, text in done.items() if not NOTHING.fullmatch(text)
    } == {}
    assert [name for name in names if is_uuid(name)] == []
