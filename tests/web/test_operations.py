"""Every operation of the API has a valid request, which tests of all of them rest on."""

import inspect
from collections.abc import Mapping
from typing import Any

from conspectus.client.transport import RemoteService
from conspectus.operations.table import OPERATIONS
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.web import operation_routes
from conspectus.web.app import ROUTE_GROUPS
from tests.web import by_hand
from tests.web.conftest import OpenSite, peopled
from tests.web.operations import DIRECTORY, PREFIX, READS, WRITES, World

STREAMING = {"GET /chat/{stream}", "GET /alerts/stream", "GET /streams/{stream}/stream"}
"""Answers that never end, or belong to a chat that is under way."""
LOGIN = "POST /session"
"""Its key is in its body."""
OTHER_IDS = {
    *("ChannelService.window", "MemoryService.window", "SearchService.window", "StreamService.window"),
    *(
        "DocumentService.import_lines",
        "MemoryService.import_lines",
        "RetentionService.start_job",
        "SearchService.retrieve",
        "SummaryService.start_job",
    ),
}
"""Routes say `search` and `context` where Python says `retrieve` and `window`."""


RECENT = "GET /memories/recent"
"""The most recent turns are no page, and fewer where fewer fit."""


def test_every_operation_of_the_document_has_a_request(openapi: dict[str, Any]) -> None:
    paths = openapi["paths"]
    described = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    requested = {
        label.replace(" ", f" {PREFIX}").replace("{ended}", "{job}").replace("{held}", "{document}")
        for label in WRITES | READS
    }
    assert requested == {described_label for described_label in described if PREFIX in described_label}


async def test_every_request_is_answered(open_site: OpenSite) -> None:
    async with open_site(chat_model=ScriptedChatModel()) as site, peopled(site) as people:
        answers = {
            label: await (await World(people.owner).request(label, parts)).sent(people.owner)
            for label, parts in (WRITES | READS).items()
            if label not in STREAMING | {LOGIN, DIRECTORY}
        }
    assert {label: answer.text for label, answer in answers.items() if not answer.is_success} == {}
    policies = {label: answer.headers["content-security-policy"] for label, answer in answers.items()}
    assert [label for label, policy in policies.items() if "frame-ancestors 'none'" not in policy] == []


async def test_a_page_has_as_many_rows_as_the_settings_allow(
    open_site: OpenSite, openapi: dict[str, Any]
) -> None:
    """Every list with a limit takes more than 1,000 where `max_limit` says so, and no list takes more."""
    exports = {"GET /memories/export", "GET /collections/{collection}/documents/export"}
    own_limits = {"GET /jobs", "GET /documents/{document}/thread", RECENT, *exports}
    statuses = {}
    async with open_site(max_limit=1_100) as site, peopled(site) as people:
        for label, parts in READS.items():
            method, _, path = label.partition(" ")
            parameters = openapi["paths"][PREFIX + path][method.lower()].get("parameters", ())
            if any(parameter["name"] == "limit" for parameter in parameters) and label not in own_limits:
                world = World(people.owner)
                statuses[label] = [
                    (
                        await (await world.request(label, with_limit(parts, limit))).sent(people.owner)
                    ).status_code
                    for limit in (1_100, 1_101)
                ]
    assert len(statuses) > 10
    assert {label: codes for label, codes in statuses.items() if codes != [200, 422]} == {}


def with_limit(parts: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    return {**parts, "params": {**parts.get("params", {}), "limit": str(limit)}}


def test_every_route_is_derived_or_has_a_reason() -> None:
    routes = [route for group in ROUTE_GROUPS for route in group.router.routes]
    derived = operation_routes.__name__
    assert {route.name for route in routes if route.endpoint.__module__ != derived} == named(by_hand.ROUTES)


def test_ids_have_the_words_of_their_methods() -> None:
    words = {
        operation.key: (set(operation.method.__name__.split("_")), set(operation.name.split("_")))
        for operation in OPERATIONS.values()
    }
    assert {key for key, (method, id) in words.items() if not method <= id} == OTHER_IDS
    assert len({operation.name for operation in OPERATIONS.values()}) == len(OPERATIONS)


def test_every_method_of_the_client_is_derived_or_has_a_reason() -> None:
    written = {
        f"{kind.__name__.removeprefix('Remote')}.{name}"
        for kind in RemoteService.__subclasses__()
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_") and member.__module__ == kind.__module__
    }
    assert written == named(by_hand.METHODS)


def named(reasons: Mapping[str, str]) -> set[str]:
    return {name for names in reasons.values() for name in names.split()}
