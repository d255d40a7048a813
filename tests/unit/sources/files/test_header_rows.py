"""Which rows of a table name its columns."""

import pytest

from conspectus.sources.files.header_rows import begins_with_names, count_captions, count_name_rows, is_figure


@pytest.mark.parametrize(
    ("rows", "has_names"),
    [
        ([], False),
        ([["Name", "Fee"]], True),
        ([["Name", "Fee"], ["Ann", "2"]], True),
        ([["Name", "2025"], ["Ann", "2"]], True),
        ([["1", "2"], ["3", "4"]], False),
        ([["Ann", "2", "3.5"], ["Bo", "4", "5.5"]], False),
        ([["Day", "Room 1", "7"], ["3", "4", "x"], ["5", "6", "y"]], True),
        ([["7"]], True),
    ],
)
def test_the_first_row_has_names_unless_figures_stand_above_figures(rows, has_names):
    assert begins_with_names(rows) is has_names


@pytest.mark.parametrize(
    ("rows", "captions"),
    [
        ([["Fees", ""], ["Name", "Fee"]], 1),
        ([["Fees", "Fees"], ["of 2025", ""], ["Name", "Fee"]], 2),
        ([["Name", "Fee"], ["Ann", "2"]], 0),
        ([["a"], ["b"]], 0),
        ([["note", ""]] * 9, 0),
        ([], 0),
    ],
)
def test_single_texts_above_the_names_are_captions(rows, captions):
    assert count_captions(rows) == captions


def test_figures_are_numbers_amounts_times_and_truth_values():
    figures = ["7", "-1,234.50", "12.5%", "$ 3", "€5", "36:00", "2026-05-01", "1e-5", "(12)", "TRUE"]
    assert all(map(is_figure, figures))
    assert not any(map(is_figure, ["", "Q1", "Room 7", "7 apples", "A-7", "v1.2"]))


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([["", "Fee", "Fee"], ["Berth", "north", "south"], ["Heron", "1", "2"], ["Gull", "3", "4"]], 2),
        ([["", "2024", "2025"], ["Berth", "Q1", "Q1"], ["Heron", "1", "2"], ["Gull", "3", "4"]], 2),
        ([["A", "A", "B"], ["Name", "Ann", "2022"], ["Claim", "7", "Jeep"], ["Phone", "1", "L"]], 1),
        ([["", "Fee", "Fee"], ["Berth", "north", "south"], ["Heron", "low", "high"], ["Gull", "a", "b"]], 1),
        ([["Fees", "Fees", "Fees"], ["Berth", "a", "b"], ["Heron", "1", "2"], ["Gull", "3", "4"]], 1),
        ([["Berth", "a"], ["Heron", "b"], ["Gull", "3"], ["Tern", "4"]], 1),
        ([["", "Fee"], ["Berth", "x"], ["Heron", "1"]], 1),
        ([], 1),
    ],
)
def test_names_that_are_partly_blank_stand_over_names(rows, count):
    assert count_name_rows(rows) == count


def test_a_form_has_no_names():
    assert not begins_with_names([["Name:", "Ann"], ["Fee:", "2"], ["", "more"]])
    assert begins_with_names([["Name:", "Fee"], ["Ann", "2"]])
