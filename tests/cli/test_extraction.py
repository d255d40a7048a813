"""`conspectus memory extract` with a vendor's model, by the OpenAI protocol."""

import json
from collections.abc import Sequence

from tests.cli.conftest import Shell
from tests.cli.test_ask import settings, vendor
from tests.extracting import facts_in
from tests.support.chat_server import ChatCall

TEA = "Ann likes: green tea."


def says(call: ChatCall) -> Sequence[str]:
    """A fact of the memory that was asked about."""
    told = facts_in(TEA) if TEA in call.body["messages"][-1]["content"] else []
    return [json.dumps({"facts": [{**each, "kind": "fact"} for each in told]})]


def test_facts_are_extracted_listed_and_shown(shell: Shell) -> None:
    shell("memory", "add", TEA, "--user", "ann")
    with vendor(says) as model:
        made = shell("memory", "extract", "--user", "ann", **settings(model))
        again = shell("memory", "extract", "--all", "--json", **settings(model))
        assert (made.code, again.code, len(model.calls)) == (0, 0, 1)
    assert "complete" in made.out
    assert [each["result"]["facts"] for each in again.json] == [0]
    listed = shell("memory", "list", "--user", "ann", "--kind", "fact")
    assert (listed.code, listed.err) == (0, "")
    assert f"  fact, near duplicate\n  So {TEA}" in listed.out


def test_without_a_model_it_fails(shell: Shell) -> None:
    shell("memory", "add", TEA, "--user", "ann")
    done = shell("memory", "extract", "--all")
    assert (done.code, "CONSPECTUS_CHAT_MODEL" in done.err) == (1, True)
