"""Documents that share a title have names that differ."""

import pytest

from conspectus.text.document_names import key_beside_title, name_with_key, readable_key

UUID = "0190a6f2-7c3e-7b61-9d2e-0a1b2c3d4e5f"


@pytest.mark.parametrize(
    ("title", "key", "beside", "name"),
    [
        ("Abstract", "ops/menu.md", "ops/menu.md", "Abstract (ops/menu.md)"),
        ("menu.md", "menu.md", "", "menu.md"),
        ("", "menu.md", "", "menu.md"),
        ("Abstract", UUID, "", "Abstract"),
        ("", UUID, "", ""),
        ("Ab\nstract", "ops\nmenu", "ops menu", "Ab stract (ops menu)"),
    ],
)
def test_a_key_stands_beside_a_title_that_does_not_name_it(
    title: str, key: str, beside: str, name: str
) -> None:
    assert key_beside_title(title, key) == beside
    assert name_with_key(title, key) == name


def test_digests_are_no_names() -> None:
    assert readable_key("d" * 40) == readable_key(f"{'d' * 64}#3") == ""
