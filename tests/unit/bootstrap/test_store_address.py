"""The store that a path or a URL names."""

import pytest

from conspectus.bootstrap.store_address import absolute, address_of
from conspectus.errors import InvalidInput
from conspectus.settings import Settings

MISSPELT = ["postgres:/u:secret@host/x", "postgresql:u:secret@host/x", "postgresq://u:secret@host/x"]


@pytest.mark.parametrize("address", MISSPELT)
def test_a_misspelt_url_is_no_folder_and_shows_no_password(address: str) -> None:
    with pytest.raises(InvalidInput, match="begin with postgresql://") as refused:
        address_of(absolute(address), Settings())
    assert "secret" not in str(refused.value)


def test_a_folder_may_be_called_after_the_database() -> None:
    assert not address_of("postgres", Settings()).is_shared
