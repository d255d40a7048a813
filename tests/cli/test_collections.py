"""Collections and sources, listed, created, renamed and deleted from the command line."""

import pytest

from tests.cli.conftest import Shell


def test_a_collection_is_created_renamed_and_deleted(shell: Shell) -> None:
    assert shell("collections", "create", "papers", "--language", "none", "--description", "PDFs").code == 0
    assert shell("add", "-", "--collection", "papers", typed="about whales").code == 0
    assert shell("collections", "rename", "papers", "essays").out == "renamed papers to essays\n"
    [collection] = shell("collections", "list", "--json").json
    assert (collection["name"], collection["language"], collection["description"]) == ("essays", None, "PDFs")
    assert "essays" in shell("collections", "list").out
    cancelled = shell("collections", "delete", "essays", typed="n\n")
    assert (cancelled.code, "with 1 document?" in cancelled.err) == (1, True)
    gone = shell("collections", "delete", "essays", "--yes", "--purge", "--json")
    assert (gone.code, gone.json["documents"], gone.json["purged"]) == (0, 1, True)
    assert shell("collections", "list").code == 3


def test_a_source_is_created_renamed_and_deleted(filled: Shell) -> None:
    assert filled("sources", "create", "inbox").code == 0
    filled("add", "-", "--source", "inbox", typed="about whales")
    assert filled("sources", "rename", "inbox", "letters").code == 0
    assert {source["name"] for source in filled("sources", "list", "--json").json} > {"letters"}
    assert "letters" in filled("sources", "list").out
    assert filled("sources", "delete", "letters", "-y").out.startswith("deleted 1 document, ")
    assert filled("search", "whales").code == 3


@pytest.mark.parametrize("group", ["collections", "sources"])
def test_what_does_not_exist_is_neither_renamed_nor_deleted(filled: Shell, group: str) -> None:
    assert filled(group, "rename", "nothing", "something").code == 3
    assert filled(group, "delete", "nothing", "--yes").code == 3


def test_a_name_that_is_taken_is_refused(filled: Shell) -> None:
    done = filled("collections", "create", "default")
    assert (done.code, "exists already" in done.err) == (1, True)
