"""`conspectus video summary` with a vendor's model, which does not always answer."""

import re
from collections.abc import Sequence

from tests.cli.conftest import Outcome, Shell
from tests.cli.test_ask import chat_settings, running_chat_server
from tests.support.chat_server import ChatCall, refusing

SCENES = "".join(
    f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\nScene {number} ends.\n\n"
    for number in range(1, 13)
)


def summarize_film(shell: Shell, *options: str, refused: int = 0) -> Outcome:
    """The summary of twelve scenes in batches of three, of which the first calls are refused."""
    (shell.folder / "film.srt").write_text(SCENES, encoding="utf-8")
    shell("streams", "import", shell.folder / "film.srt")

    def answer_with_count(call: ChatCall) -> Sequence[str]:
        scenes = call.body["messages"][-1]["content"].count("Scene")
        return [f"{scenes} scenes."] if scenes else ["All of it."]

    with running_chat_server(answer_with_count) as model:
        model.plan.extend(refusing(400, "bad_request") for _ in range(refused))
        return shell("streams", "summarize", "film", "--batch-size", "3", *options, **chat_settings(model))


def test_a_whole_summary(shell: Shell) -> None:
    done = summarize_film(shell)
    assert (done.code, done.out) == (0, "All of it.\n")
    assert "by openai:small, of 12 captions" in done.err


def test_what_is_missing_is_named_and_the_code_tells(shell: Shell) -> None:
    done = summarize_film(shell, refused=2)
    assert (done.code, done.out) == (4, "All of it.\n")
    missing = [int(number) for number in re.findall(r"left out: (\d) captions?, 00:00:\d\d to 00:", done.err)]
    assert len(missing) == 2
    assert f"by openai:small, of {12 - sum(missing)} captions" in done.err


def test_as_json_it_is_one_document(shell: Shell) -> None:
    done = summarize_film(shell, "--json", refused=1)
    assert (done.code, done.json["outcome"]) == (4, "partial")
    failed = [batch for batch in done.json["batches"] if batch["state"] == "failed"]
    assert [batch["code"] for batch in failed] == ["LLM_ERROR"]


def test_where_nothing_could_be_summarised_it_fails(shell: Shell) -> None:
    done = summarize_film(shell, refused=8)
    assert (done.code, done.out) == (1, "")
    assert "error:" in done.err


def test_what_is_chosen_needs_no_model(shell: Shell) -> None:
    done = summarize_film(shell, "--extractive", "--sentences", "2", refused=8)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert "chosen from 12 captions" in done.err
