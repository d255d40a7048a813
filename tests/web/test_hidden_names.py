"""Names of users and groups: on every route, one that is hidden is answered like one that nobody has."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx

from tests.web.conftest import OpenSite, peopled
from tests.web.operations import PREFIX, READS, WRITES, World, filled

EVERY: Final = WRITES | READS
HIDDEN, MISSING = "eve-hidden", "eve-absent"
NAMES: Final = frozenset({"user", "group", "grantee", "transfer_to"})
"""Parameters and fields that take the name of a user or a group."""
CHANGING: Final = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|\+00:00)"), "TIME"),
    (re.compile(r"new-[0-9]+"), "FRESH"),
    (re.compile(r"(?<=\W)[0-9]+(\.[0-9]+)?(e-?[0-9]+)?(?=[\],}])"), "NUMBER"),
)
"""What differs between two equal requests: ids, times, and numbers of rows."""
PASSING: Final = frozenset({"x-request-id", "date", "etag", "content-length", "location"})
"""Headers that differ for the same reasons."""


def walk_name_parameters(openapi: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield operations with each parameter or field that takes a name, and where it stands."""
    for path, item in openapi["paths"].items():
        for method, operation in item.items():
            label = f"{method.upper()} {path.removeprefix(PREFIX)}"
            fields = {parameter["name"]: parameter["in"] for parameter in operation.get("parameters", ())}
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            reference = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
            schema = openapi["components"]["schemas"].get(reference, {})
            fields |= dict.fromkeys(schema.get("properties", {}), "body")
            yield from ((label, fields[name], name) for name in NAMES & fields.keys())
    yield "DELETE /collections/{collection}/grants", "query", "id"


def with_name(label: str, where: str, field: str, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a request with a name at a place: of a user and of a group, where both may be."""
    parts = EVERY[label]
    if field == "grantee":
        for kind in ("user", "group"):
            yield {**parts, "json": {**parts["json"], field: {"kind": kind, "id": name}}}
    elif field == "id":
        for kind in ("user", "group"):
            yield {**parts, "params": {"kind": kind, "id": name}}
    elif where == "path":
        yield parts
    else:
        member = "json" if where == "body" else "params"
        yield {**parts, member: {**parts.get(member, {}), field: name}}


def answer_without(name: str, response: httpx.Response) -> tuple[Any, ...]:
    """Return the status, the body and the headers of an answer without what differs for any name."""
    body = response.text.replace(name, "NAME")
    for pattern, replacement in CHANGING:
        body = pattern.sub(replacement, body)
    headers = sorted(pair for pair in response.headers.items() if pair[0] not in PASSING)
    return response.status_code, body, headers


async def test_a_hidden_name_is_answered_like_a_missing_one_everywhere(
    open_site: OpenSite, openapi: dict[str, Any]
) -> None:
    """Alice manages all that she names; nobody shares anything with Eve.

    Reads come first: what is written for one of the two names would be found under it.
    """
    name_parameters = sorted(
        set(walk_name_parameters(openapi)), key=lambda parameter: (parameter[0] in WRITES, parameter)
    )
    assert {("PUT /collections/{collection}/grants", "body", "grantee")} <= set(name_parameters)
    answers: dict[tuple[str, ...], list[list[tuple[Any, ...]]]] = {}
    async with open_site() as site, peopled(site) as people:
        await site.engine.people.create_user(HIDDEN)
        await site.engine.people.create_group(HIDDEN)
        world = World(people.alice, {"user": "alice", "group": "none", "granted": "alice", "member": None})
        for label, where, field in name_parameters:
            await world.request(label, EVERY[label])
            for name in (MISSING, HIDDEN):
                names = {**world.known, field: name}
                sent = [
                    answer_without(name, await filled(label, parts, names).sent(people.alice))
                    for parts in with_name(label, where, field, name)
                ]
                answers.setdefault((label, where, field), []).append(sent)
    assert {parameter: both for parameter, both in answers.items() if both[0] != both[1]} == {}
    statuses = {answer[0] for both in answers.values() for answer in both[1]}
    assert {403, 404} <= statuses
    granted = answers["PUT /collections/{collection}/grants", "body", "grantee"][1]
    assert [answer[0] for answer in granted] == [404, 404]
