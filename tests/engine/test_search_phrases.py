"""Quotations come before other texts with the same words."""

from pathlib import Path

from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument
from conspectus.testing.embedders import HashedEmbedder


async def test_a_quotation_comes_before_the_same_words_in_another_order(tmp_path: Path) -> None:
    quoted = "we turned the boat around before the tide was out"
    shuffled = " ".join(sorted(quoted.split())) + " tide boat"
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add(
            [NewDocument(shuffled, key="b"), NewDocument(f"{quoted}. " * 2 + "Rain. " * 40, key="a")],
            wait=True,
        )
        hits = (await engine.retrieve(quoted)).hits
    assert [hit.document.key for hit in hits] == ["a", "b"]
    assert (hits[0].parts["phrase"], hits[1].parts["phrase"]) == (1.0, 0.0)


async def test_a_quotation_of_common_words_is_found_behind_many_better_texts(tmp_path: Path) -> None:
    quoted = "the plugins of a host can also hook into that"
    better = [NewDocument("plugins hook host also that " * 3, key=f"b{number}") for number in range(25)]
    rest = [NewDocument(f"{quoted}. " + "Rain fell on the sea. " * 3, key="a")]
    rest += [
        NewDocument(f"Number {number} says nothing that was not said before. " * 2) for number in range(99)
    ]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add([*better, *rest], wait=True)
        hits = (await engine.retrieve(quoted, retrievers=("keyword",))).hits
        alone = (await engine.retrieve("hook plugins host that also the", retrievers=("keyword",))).hits
    assert (hits[0].document.key, hits[0].parts["phrase"]) == ("a", 1.0)
    assert all(hit.document.key != "a" for hit in alone)
