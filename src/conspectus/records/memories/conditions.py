"""Conditions on memories and their order."""

from sqlalchemy import and_

from conspectus.model.memory import FACT, PINNED
from conspectus.records.core.dialects import json_kind
from conspectus.records.core.statements import IDS
from conspectus.records.tables.core import documents

IS_PINNED = json_kind(documents.c.metadata, PINNED).is_not_distinct_from("true")
STATES_A_FACT = json_kind(documents.c.metadata, FACT).is_not_distinct_from("object")
"""The properties of a memory itself, separate from the caller's metadata."""


IN_SCOPE = documents.c.source.in_(IDS)


IS_TURN = documents.c.thread.is_not(None)
IS_NOTE = and_(documents.c.thread.is_(None), documents.c.parent.is_(None))


BY_TIME = (documents.c.order_start, documents.c.number)
