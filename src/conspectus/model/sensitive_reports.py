"""Where stored texts have secrets and personal data."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from conspectus.deferred import dataclass
from conspectus.model.ids import DocumentId
from conspectus.model.parameters import StoredTitle

SensitiveCategory = Literal["secrets", "cards", "accounts", "emails", "phones"]
CATEGORIES: tuple[SensitiveCategory, ...] = get_args(SensitiveCategory)


@dataclass(frozen=True, slots=True)
class SensitivePlace:
    """Characters [start, end) of a stored text with a secret or personal data, which it does not repeat.

    `kind` is the kind of secret. `column` is the table and column of the text, `chunks.text` for the text of
    a document, and `row` the id of its row. `document` and `title` are empty for rows of other tables.
    """

    document: DocumentId
    title: StoredTitle
    category: SensitiveCategory
    kind: str
    start: int
    end: int
    column: str = "chunks.text"
    row: str = ""


Reach = Literal["source", "collection", "store"]
"""What the rows of a table belong to."""


class ColumnText(NamedTuple):
    """A text of a row, in `table.column`."""

    column: str
    row: str
    text: str


@dataclass(frozen=True, slots=True)
class SensitiveReport:
    """How many documents were read, in how many of them each category was found, and how often in all texts.

    `places` are the first ones, at most as many as were asked for.
    """

    scanned: int
    documents: Mapping[SensitiveCategory, int]
    found: Mapping[SensitiveCategory, int]
    places: tuple[SensitivePlace, ...] = ()
