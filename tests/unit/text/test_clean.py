"""Characters that cannot be stored are replaced."""

import pytest

from conspectus.text.clean import clean


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        (" as it\r\nis \u0301\ufeff", " as it\r\nis \u0301\ufeff"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b\udc00", "a\ufffdb\ufffd"),
        ("\ud83c\udf89", "🎉"),
        ("\udf89\ud83c", "\ufffd\ufffd"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(text, cleaned):
    assert clean(text) == cleaned
    assert clean(cleaned).encode() == cleaned.encode()
