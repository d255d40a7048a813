"""What looks like a time and is not read."""

import pytest

from conspectus.time_expressions import unread_times


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("the crash on 03/10/2025", ["03/10/2025"]),
        ("what fell last fortnight?", ["last fortnight"]),
        ("who sang next Monday", ["next Monday"]),
        ("Yesterday", ["Yesterday"]),
        ("ten blue moons ago", ["blue moons ago"]),
        ("last month and 1/2/24", ["1/2/24", "last month"]),
        ("on 31 February 2026", ["31 February"]),
        ("the red car", []),
        ("one of 3/4 cups", []),
        ("the last call", []),
        ("", []),
    ],
)
def test_phrases_that_look_like_times(text: str, phrases: list[str]) -> None:
    assert unread_times(text) == phrases
