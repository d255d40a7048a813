"""Every operation of the API has a valid request, which tests of all of them rest on."""

from conspectus.testing.chat_models import ScriptedChatModel
from tests.web.conftest import OpenSite, Site, peopled
from tests.web.operations import PREFIX, READS, WRITES, World

STREAMING = {"GET /chat/{stream}", "GET /alerts/listen", "GET /streams/{stream}/live"}
"""Answers that never end, or belong to a chat that is under way."""


def test_every_operation_of_the_document_has_a_request(site: Site) -> None:
    paths = site.app.openapi()["paths"]
    described = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    asked = {label.replace(" ", f" {PREFIX}").replace("{ended}", "{job}") for label in WRITES | READS}
    assert asked == {each for each in described if PREFIX in each}


async def test_every_request_is_answered(open_site: OpenSite) -> None:
    async with open_site(chat_model=ScriptedChatModel()) as site, peopled(site) as people:
        answers = {
            label: await (await World(people.owner).request(label, parts)).sent(people.owner)
            for label, parts in (WRITES | READS).items()
            if label not in STREAMING
        }
    assert {label: answer.text for label, answer in answers.items() if not answer.is_success} == {}
