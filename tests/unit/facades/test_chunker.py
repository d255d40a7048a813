"""The chunker of the knowledge base."""

import pytest

from conspectus.facades.chunker import Chunker


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_nothing_has_no_pieces(text: str | None) -> None:
    assert Chunker.split(text) == []


def test_pieces_have_positions_and_counts() -> None:
    assert [(piece.content, piece.position) for piece in Chunker.split("Hello world")] == [("Hello world", 0)]
    assert Chunker.split("x" * 400)[0].token_count == 100
    assert Chunker.split("Hi")[0].token_count == 1
    pieces = Chunker.split("x" * 5000, chunk_size=200, overlap=0)
    assert max(len(piece.content) for piece in pieces) <= 200
    assert [piece.position for piece in pieces] == list(range(len(pieces)))
    assert "".join(piece.content for piece in pieces) == "x" * 5000


def test_separators_stay_in_the_text() -> None:
    pieces = Chunker.split("part1|part2|part3", chunk_size=6, overlap=0, separators=["|"])
    assert [piece.content for piece in pieces] == ["part1|", "part2|", "part3"]
    assert len(Chunker.split("🎉🎉 🎉🎉", chunk_size=3, overlap=0)) == 2
