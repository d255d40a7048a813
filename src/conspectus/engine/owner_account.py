"""The account of the owner of a store, which is created when it is first needed."""

from contextlib import suppress

from conspectus.access.account_names import OWNER_NAME
from conspectus.engine.context import EngineContext
from conspectus.errors import Conflict
from conspectus.model.access import User
from conspectus.model.ids import LOCAL


async def ensure_owner_account(context: EngineContext) -> None:
    """Create the account of the store's owner, unless there is one."""
    accounts = context.parts.accounts
    if await accounts.user(LOCAL) is None:
        owner = User(LOCAL, OWNER_NAME, context.parts.clock(), owner=True)
        with suppress(Conflict):
            await accounts.add_user(owner, context.change("create_user", owner.id, owner.name))
