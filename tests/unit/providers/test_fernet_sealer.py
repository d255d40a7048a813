"""Sealed credentials: one key, several, a wrong one, and those of another connection."""

import pytest
from cryptography.fernet import Fernet

from conspectus.errors import InvalidInput
from conspectus.providers.fernet_sealer import FernetSealer

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
CREDENTIALS = {"password": "pässword 🔑", "token": ""}


def test_what_was_sealed_is_opened_by_its_key_alone() -> None:
    sealer = FernetSealer([OLD])
    sealed = sealer.seal("c1", CREDENTIALS)
    assert sealer.unseal("c1", sealed) == CREDENTIALS
    assert "password" not in sealed
    assert FernetSealer([NEW]).unseal("c1", sealed) is None


def test_credentials_of_another_connection_are_not_opened() -> None:
    sealer = FernetSealer([OLD])
    assert sealer.unseal("c2", sealer.seal("c1", CREDENTIALS)) is None


@pytest.mark.parametrize("damaged", ["", "x", "gAAAAA", "ü"])
def test_damaged_ones_are_not_opened(damaged: str) -> None:
    assert FernetSealer([OLD]).unseal("c1", damaged) is None
    assert not FernetSealer([OLD]).is_newest(damaged)


def test_a_new_key_opens_what_the_old_one_sealed_and_seals_from_now_on() -> None:
    sealed = FernetSealer([OLD]).seal("c1", CREDENTIALS)
    both = FernetSealer([NEW, OLD])
    assert both.unseal("c1", sealed) == CREDENTIALS
    assert not both.is_newest(sealed)
    resealed = both.seal("c1", CREDENTIALS)
    assert both.is_newest(resealed)
    assert FernetSealer([NEW]).unseal("c1", resealed) == CREDENTIALS


@pytest.mark.parametrize("key", ["short", "", "x" * 43, "ü" * 44])
def test_a_key_that_is_none_is_not_repeated(key: str) -> None:
    with pytest.raises(InvalidInput, match="secret_key: has a key that is not 32") as refused:
        FernetSealer([key])
    assert not key or key not in str(refused.value)
