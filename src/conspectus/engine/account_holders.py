"""Whose keys and sessions a request is about, and the key of the request."""

from conspectus.access.policy import require_owner
from conspectus.engine.context import EngineContext
from conspectus.model.access import Key
from conspectus.model.ids import KeyId, UserId


async def find_holder(context: EngineContext, user: str | None, action: str) -> UserId:
    """Return the user whose keys or sessions are meant: oneself; the owner account may name any user.

    Raises NotFound or PermissionDenied.
    """
    person = context.person
    if user is None or user in {person.id, person.name}:
        return person.id
    require_owner(person, f"{action} of another user")
    return (await context.directory.user(user)).id


async def read_request_key(context: EngineContext) -> Key | None:
    """Return the key of the request; None without one. A token counts as a key that expires with it."""
    person = context.person
    if person.expires is not None:
        return Key(KeyId(""), person.id, "", person.scopes, context.parts.clock(), person.expires)
    if person.key is None:
        return None
    stored = await context.parts.accounts.key(person.key)
    return None if stored is None else stored[0]
