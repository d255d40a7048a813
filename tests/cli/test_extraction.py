"""`conspectus memory extract` with a vendor's model, by the OpenAI protocol."""

import json
from collections.abc import Sequence

from tests.cli.conftest import Shell
from tests.cli.test_ask import chat_settings, running_chat_server
from tests.extracting import facts_in
from tests.support.chat_server import ChatCall

TEA = "Ann likes: green tea."


def answer_with_facts(call: ChatCall) -> Sequence[str]:
    """A fact of the memory that was asked about."""
    facts = facts_in(TEA) if TEA in call.body["messages"][-1]["content"] else []
    return [json.dumps({"facts": [{**fact, "kind": "fact"} for fact in facts]})]


def test_facts_are_extracted_listed_and_shown(shell: Shell) -> None:
    shell("memory", "add", TEA, "--user", "ann")
    with running_chat_server(answer_with_facts) as model:
        outcome = shell("memory", "extract", "--user", "ann", **chat_settings(model))
        again = shell("memory", "extract", "--all", "--json", **chat_settings(model))
        assert (outcome.code, again.code, len(model.calls)) == (0, 0, 1)
    assert "complete" in outcome.out
    assert [job["result"]["facts"] for job in again.json] == [0]
    listed = shell("memory", "list", "--user", "ann", "--kind", "fact")
    assert (listed.code, listed.err) == (0, "")
    assert f"  fact, near duplicate\n  So {TEA}" in listed.out


def test_without_a_model_it_fails(shell: Shell) -> None:
    shell("memory", "add", TEA, "--user", "ann")
    done = shell("memory", "extract", "--all")
    assert (done.code, "CONSPECTUS_CHAT_MODEL" in done.err) == (1, True)
