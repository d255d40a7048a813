"""Which names a user may get without the owner's choice."""

from conspectus.access.account_names import OWNER_NAME
from conspectus.access.reader import AuthorizedReader
from conspectus.engine.components import EngineComponents
from conspectus.errors import InvalidInput
from conspectus.ingest.column_rules import screen_column
from conspectus.model.access import LOCAL_OWNER


async def is_free_name(parts: EngineComponents, name: str) -> bool:
    """Return whether a new user may have a name: not the owner's, and no prefix of names of collections."""
    if name == OWNER_NAME:
        return False
    try:
        screen_column(parts.settings.sensitive, "users.name", name, None, origin=None)
    except InvalidInput:
        return False
    reader = AuthorizedReader(LOCAL_OWNER, parts.records, parts.accounts, parts.clock)
    return not await reader.has_prefix(f"{name}/")
