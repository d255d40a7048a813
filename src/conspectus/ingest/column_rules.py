"""What is stored in a text column: by the rules of the column for secrets, and for attacks on models."""

from typing import Any, TypeVar, cast

from conspectus.ingest.quarantine import refuse_attacks, strings_in
from conspectus.ingest.sensitive import screen_of, with_tags
from conspectus.model.ids import CollectionId
from conspectus.model.text_columns import rule_of
from conspectus.model.trust import Origin

Value = TypeVar("Value")


def screen_column(
    setting: str,
    column: str,
    value: Value,
    collection: CollectionId | None,
    *,
    origin: Origin | None,
    field: str = "",
) -> Value:
    """Return what is stored in `table.column` of a collection; None: by the general rules.

    Metadata get the tags of their texts. Raises InvalidInput for what is refused, also for an attack by a
    program where rows have no level.
    """
    screen = screen_of(setting, collection or CollectionId(""))
    tags: set[str] = set()
    stored: Any = value if screen is None else screen.column(column, value, field=field, tags=tags)
    if column == "sources.metadata":
        stored = with_tags(stored, tags)
    if rule_of(column).trusting == "checked":
        refuse_attacks(origin, field or column.partition(".")[2], *strings_in(stored))
    return cast(Value, stored)
