"""Which rows of a table have the names of its columns, where the file does not say it."""

import re
from collections.abc import Sequence

MAX_CAPTIONS = 5
MAX_COMPARED_ROWS = 20
MIN_LABEL_SHARE = 0.7
MIN_ROWS_WITH_TWO_NAMES = 4
_FIGURE = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d\s.,'_:/%-]*[%€$)]?(?:[eE][-+]?\d+)?|TRUE|FALSE|true|false")
_YEAR = re.compile(r"(?:19|20)\d\d")

Row = Sequence[str]


def count_captions(rows: Sequence[Row]) -> int:
    """Return how many of the first rows are captions: a single text above a row of several."""
    for number, row in enumerate(rows[: MAX_CAPTIONS + 1]):
        texts = {text for text in row if text}
        if len(texts) > 1:
            return number
        if sum(map(bool, row)) > 1 and not _spans_row(row, rows):
            return 0
    return 0


def begins_with_names(rows: Sequence[Row]) -> bool:
    """Return whether the first row names the columns.

    It does unless most columns of figures have one there, too. Years are names where they are all of its
    figures, as in `Country, 2024, 2025`. A form has labels in its first column, and no names.
    """
    if not rows or _is_form(rows):
        return False
    first, below = rows[0], rows[1 : 1 + MAX_COMPARED_ROWS]
    figures = [text for text in first if is_figure(text)]
    if all(map(_YEAR.fullmatch, figures)):
        return True
    columns = ([row[column] for row in below if column < len(row)] for column in range(len(first)))
    typed = [all(map(is_figure, filter(None, column))) and any(column) for column in columns]
    named = sum(is_typed and not is_figure(text) for text, is_typed in zip(first, typed, strict=True))
    unnamed = sum(is_typed and is_figure(text) for text, is_typed in zip(first, typed, strict=True))
    return not below or named > unnamed


def count_name_rows(rows: Sequence[Row]) -> int:
    """Return how many of the first rows name the columns: two, if one that is partly blank stands over names.

    The names have no figures, but for years in the upper row, and figures below.
    """
    if len(rows) < MIN_ROWS_WITH_TWO_NAMES:
        return 1
    first, second, *below = rows
    is_partial = 1 < len(set(first)) < len(first) or not all(first)
    are_names = all(second) and not any(map(is_figure, second))
    is_above = not any(is_figure(text) and not _YEAR.fullmatch(text) for text in first)
    columns = ([row[column] for row in below if column < len(row)] for column in range(len(second)))
    has_figures = any(
        all(map(is_figure, column)) and not is_figure(name)
        for name, column in zip(second, columns, strict=True)
    )
    return 2 if is_partial and is_above and are_names and has_figures else 1


def is_figure(text: str) -> bool:
    """Return whether a cell has a number, an amount, a time, a date in digits, or a truth value."""
    return _FIGURE.fullmatch(text.strip()) is not None


def _is_form(rows: Sequence[Row]) -> bool:
    """Return whether most texts of the first column are labels, as `Name:`."""
    labels = [row[0] for row in rows if row and row[0]]
    return bool(labels) and sum(text.endswith(":") for text in labels) >= MIN_LABEL_SHARE * len(labels)


def _spans_row(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a text that is repeated fills the row: a merged cell over all columns."""
    return all(row) and len(row) >= max(map(len, rows))
