"""Tokens: their form, and that a check takes the same time whether the token is known or not."""

import pytest

from conspectus.access import tokens
from conspectus.access.tokens import INVITATIONS, KEYS, SESSIONS, TokenKind, has_hash, hash_of

KINDS = [KEYS, SESSIONS, INVITATIONS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_has_its_id_and_256_bits_more(kind: TokenKind) -> None:
    id, token = kind.create()
    assert kind.read_id(token) == id
    assert token.startswith(f"{kind.prefix}_{id}_") and len(token.rpartition("_")[2]) == 64
    assert kind.create()[1] != token


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_of_another_kind_or_form_has_no_id(kind: TokenKind) -> None:
    _, token = kind.create()
    others = [other.create()[1] for other in KINDS if other is not kind]
    broken = [token[:-1], f"{token}0", f"{token}\n", f" {token}", token.upper(), token.replace("_", "-"), ""]
    assert {kind.read_id(text) for text in (*others, *broken)} == {None}


def test_only_a_token_has_its_hash() -> None:
    _, token = KEYS.create()
    assert has_hash(token, hash_of(token))
    assert not has_hash(token, hash_of(f"{token}0"))
    assert not has_hash(token, None)


def test_what_is_compared_for_an_unknown_token_is_as_long_and_no_hash_of_it() -> None:
    assert len(tokens._NO_HASH) == len(hash_of(""))


def test_text_that_is_no_unicode_has_a_hash() -> None:
    assert not has_hash("\ud800", hash_of(""))
