"""Tokens of a query: their kinds, their text, and the letters directly after a number."""

from conspectus.time_expressions.tokens import MAX_PARSED_CHARACTERS, split_into_tokens


def test_letters_directly_after_a_number_are_its_ending() -> None:
    tokens = split_into_tokens("3PM it\u2019s 12:30pm, 5-minute 2026-01-05 1h2m")
    assert [(token.kind, token.text, token.ending) for token in tokens] == [
        ("number", "3", "pm"),
        ("word", "it's", ""),
        ("clock", "12:30", "pm"),
        ("mark", ",", ""),
        ("number", "5", ""),
        ("dash", "-", ""),
        ("word", "minute", ""),
        ("date", "2026-01-05", ""),
        ("amount", "1h2m", ""),
    ]


def test_tokens_have_their_position_in_the_query() -> None:
    query = "  at 12:30pm !"
    assert [query[token.start : token.end] for token in split_into_tokens(query)] == ["at", "12:30pm", "!"]


def test_only_the_first_characters_of_a_query_are_parsed() -> None:
    word = "x" * (MAX_PARSED_CHARACTERS - 2)
    assert len(split_into_tokens(f"{word} 7")) == 2
    assert len(split_into_tokens(f"{word}  7")) == 1
    assert split_into_tokens(f"{word} 77")[1].text == "7"
