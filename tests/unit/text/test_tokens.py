import pytest

from conspectus.text.tokens import ESTIMATORS


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("chars4_floor", "", 0),
        ("chars4_floor", "abc", 0),
        ("chars4_floor", "abcdefg", 1),
        ("chars4_ceil", "", 0),
        ("chars4_ceil", "a", 1),
        ("chars4_ceil", "abcd", 1),
        ("chars4_ceil", "abcde", 2),
        ("chars4_min1", "", 1),
        ("chars4_min1", "Hi", 1),
        ("chars4_min1", "x" * 400, 100),
        ("chars4_min1", "ж" * 400, 100),
        ("bytes4_min1", "", 1),
        ("bytes4_min1", "x" * 400, 100),
        ("bytes4_min1", "ж" * 400, 200),
        ("bytes4_min1", "🎉", 1),
        ("bytes4_min1", "\ud800" * 4, 3),
    ],
)
def test_each_rule_counts_as_its_name_says(name, text, tokens):
    assert ESTIMATORS[name](text) == tokens


def test_the_rules_cannot_be_changed_in_place():
    with pytest.raises(TypeError):
        ESTIMATORS["chars4_floor"] = len
