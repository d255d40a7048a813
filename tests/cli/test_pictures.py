"""Pictures of streams: what is there is seen, in its place, and nothing is wider than the screen."""

import io
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from conspectus.cli.stream_timeline import (
    BLOCKS,
    PLAIN,
    Lane,
    Picture,
    Scale,
    Span,
    axis,
    blocks,
    coverage,
    density,
)
from conspectus.text.stream_clocks import StreamClock

MEDIA = StreamClock()
BERLIN = StreamClock(datetime(2026, 3, 2, 7, 23, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
SECONDS = st.floats(0.0, 1_000.0)
SPANS = st.lists(st.tuples(SECONDS, SECONDS).map(lambda ends: (min(ends), max(ends))), max_size=8)


def render(picture: Picture, width: int, *, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=file, width=width, color_system=None)
    console.print(picture)
    file.seek(0)
    return file.read().splitlines()


def picture(*lanes: Lane, last: float = 600.0, captions: tuple[Span, ...] = ((0.0, 5.0),)) -> Picture:
    return Picture("lecture", MEDIA, 0.0, last, captions, lanes)


@pytest.mark.parametrize("width", [20, 40, 80, 161])
@pytest.mark.parametrize("name", ["car", "人が話している" * 9, "x" * 300, "a\x1b[2Jb\nc"])
def test_no_line_is_wider_than_the_screen(width: int, name: str) -> None:
    lines = render(picture(Lane(name, [(10.0, 60.0)])), width)
    assert max(cell_len(line) for line in lines) <= max(width, 45)
    assert "\x1b" not in "".join(lines)
    assert len(lines) >= 5


def test_what_happens_stands_in_its_place() -> None:
    lines = render(picture(Lane("first", [(0.0, 300.0)]), Lane("last", [(599.0, 599.0)])), 80)
    assert lines[0].startswith("lecture, 00:00:00 to 00:10:00")
    first, last = lines[2], lines[3]
    bar = first[first.index("█") : first.rindex("█") + 1]
    assert 25 <= len(bar) <= 35
    assert last.index("▁") > first.rindex("█")
    assert lines[4].count("┬") >= 3
    assert ("00:00:00" in lines[5], "00:04:00" in lines[5]) == (True, True)


def test_times_of_the_calendar_are_those_of_the_zone() -> None:
    lines = render(Picture("cam", BERLIN, 0.0, 7_200.0, (), ()), 100)
    assert "2026-03-02T08:23:00+01:00" in lines[0]
    assert "08:30" in lines[-1]
    days = render(Picture("cam", BERLIN, 0.0, 86_400.0 * 9, (), ()), 100)
    assert "2026-03-04" in days[-1]


def test_a_screen_without_blocks_gets_letters() -> None:
    lines = render(picture(Lane("car", [(0.0, 600.0)])), 80, encoding="ascii")
    assert "@@@@" in lines[2]


@pytest.mark.parametrize("last", [0.0, 0.05, 1e-9, 1e9])
def test_any_length_has_a_picture(last: float) -> None:
    lines = render(picture(Lane("car", [(0.0, last)]), last=last), 80)
    assert any(block in lines[2] for block in BLOCKS[1:])


@given(spans=SPANS, cells=st.integers(1, 200))
def test_shares_are_shares(spans: list[Span], cells: int) -> None:
    scale = Scale(0.0, 1_000.0, cells)
    for shares in (coverage(spans, scale), density(spans, scale)):
        assert len(shares) == cells
        assert all(0.0 <= share <= 1.0 for share in shares)
        assert any(shares) == bool(spans)
        for ramp in (BLOCKS, PLAIN):
            line = blocks(shares, ramp)
            assert [block != " " for block in line] == [share > 0 for share in shares]


@given(spans=SPANS)
def test_the_same_twice_covers_no_more(spans: list[Span]) -> None:
    scale = Scale(0.0, 1_000.0, 50)
    assert coverage([*spans, *spans], scale) == coverage(spans, scale)


@given(first=st.floats(0, 1e8), length=st.floats(0.1, 1e9), cells=st.integers(10, 200))
def test_an_axis_is_as_long_as_its_lines(first: float, length: float, cells: int) -> None:
    for clock in (MEDIA, BERLIN):
        ruler, labels = axis(Scale(first, first + length, cells), clock)
        assert len(ruler) == cells
        assert len(labels) <= cells
