"""The tokens of SCIM: none, one or two, and long enough that nobody guesses them."""

from dataclasses import replace

import pytest

from conspectus.access.scim_tokens import ScimTokens
from conspectus.errors import InvalidInput, Unauthenticated
from conspectus.settings import Settings

TOKEN, OTHER = "a" * 32, "b" * 40


def tokens_of(setting: str) -> ScimTokens:
    return ScimTokens(replace(Settings(), scim_token=setting))


@pytest.mark.parametrize("setting", ["", " ", ","])
def test_without_tokens_nobody_is_let_in(setting: str) -> None:
    tokens = tokens_of(setting)
    assert not tokens
    for secret in (None, "", " "):
        with pytest.raises(Unauthenticated):
            tokens.require(secret)


@pytest.mark.parametrize("secret", [None, "", TOKEN[:-1], f"{TOKEN}b", f"{TOKEN},{OTHER}", "\ud800"])
def test_only_the_whole_token_is_accepted(secret: str | None) -> None:
    tokens = tokens_of(f"{TOKEN},{OTHER}")
    for accepted in (TOKEN, OTHER):
        tokens.require(accepted)
    with pytest.raises(Unauthenticated):
        tokens.require(secret)


@pytest.mark.parametrize("setting", ["short", f"{TOKEN},short", ",".join([TOKEN] * 3)])
def test_short_and_many_tokens_are_refused(setting: str) -> None:
    with pytest.raises(InvalidInput, match="scim_token"):
        tokens_of(setting)
