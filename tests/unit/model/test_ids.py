"""The form of ids."""

import pytest

from conspectus.model.ids import is_stable_id, is_uuid
from conspectus.text.hashing import stable_id


@pytest.mark.parametrize(
    ("name", "uuid", "stable"),
    [
        (stable_id("x"), True, True),
        (stable_id("x").upper(), True, True),
        ("0b9e7a3c-1f2d-4c5e-9a7b-3d2f1e0c9b8a", True, False),
        ("0b9e7a3c1f2d5c5e9a7b3d2f1e0c9b8a", False, False),
        ("{0b9e7a3c-1f2d-5c5e-9a7b-3d2f1e0c9b8a}", False, False),
        ("0b9e7a3c-1f2d-5c5e-9a7b-3d2f1e0c9b8a\n", False, False),
        ("0b9e7a3g-1f2d-5c5e-9a7b-3d2f1e0c9b8a", False, False),
        ("", False, False),
    ],
)
def test_ids_have_the_form_of_a_uuid_and_those_of_sources_a_version(
    name: str, uuid: bool, stable: bool
) -> None:
    assert (is_uuid(name), is_stable_id(name)) == (uuid, stable)
