"""Accounts, groups and keys."""

from collections.abc import Sequence

from conspectus.model.access import Group, Key, NewKey, Person, User
from conspectus.web.deps import EngineOf, IdInPath, NamedInPath, NamedInQuery, ShownOnce
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.people import (
    GroupAnswer,
    GroupBody,
    KeyAnswer,
    KeyBody,
    NewKeyAnswer,
    PersonAnswer,
    UserAnswer,
    UserBody,
    UserChange,
)

router = Section("people")


@router.get("/me", response_model=PersonAnswer, responses=problems())
async def who_am_i(engine: EngineOf) -> Person:
    """Whom the key belongs to, and what it may be used for."""
    return await engine.whoami()


@router.get("/users", response_model=list[UserAnswer], responses=problems())
async def list_users(engine: EngineOf) -> Sequence[User]:
    """All accounts by name."""
    return await engine.users()


@router.post("/users", response_model=UserAnswer, status_code=201, responses=problems())
async def create_user(body: UserBody, engine: EngineOf) -> User:
    """Make an account."""
    return await engine.create_user(body.name)


@router.get("/users/{user}", response_model=UserAnswer, responses=problems())
async def get_user(user: NamedInPath, engine: EngineOf) -> User:
    """The account of that id or name."""
    return await engine.find_user(user)


@router.patch("/users/{user}", response_model=UserAnswer, responses=problems())
async def update_user(user: NamedInPath, body: UserChange, engine: EngineOf) -> User:
    """Disable an account, or let it in again."""
    return await engine.disable_user(user, disabled=body.disabled)


@router.delete("/users/{user}", status_code=204, responses=problems())
async def delete_user(user: NamedInPath, engine: EngineOf, heir: NamedInQuery = None) -> None:
    """Delete an account; its collections go to the heir."""
    await engine.delete_user(user, heir=heir)


@router.get("/groups", response_model=list[GroupAnswer], responses=problems())
async def list_groups(engine: EngineOf) -> Sequence[Group]:
    """All groups by name."""
    return await engine.groups()


@router.post("/groups", response_model=GroupAnswer, status_code=201, responses=problems())
async def create_group(body: GroupBody, engine: EngineOf) -> Group:
    """Make a group."""
    return await engine.create_group(body.name)


@router.delete("/groups/{group}", status_code=204, responses=problems())
async def delete_group(group: NamedInPath, engine: EngineOf) -> None:
    """Delete a group with what it was granted."""
    await engine.delete_group(group)


@router.get("/groups/{group}/members", response_model=list[UserAnswer], responses=problems())
async def list_members(group: NamedInPath, engine: EngineOf) -> Sequence[User]:
    """The members of a group by name."""
    return await engine.members(group)


@router.put("/groups/{group}/members/{user}", status_code=204, responses=problems())
async def join_group(group: NamedInPath, user: NamedInPath, engine: EngineOf) -> None:
    """Put a user into a group."""
    await engine.join(group, user)


@router.delete("/groups/{group}/members/{user}", status_code=204, responses=problems())
async def leave_group(group: NamedInPath, user: NamedInPath, engine: EngineOf) -> None:
    """Take a user out of a group."""
    await engine.leave(group, user)


@router.get("/keys", response_model=list[KeyAnswer], responses=problems())
async def list_keys(engine: EngineOf, user: NamedInQuery = None) -> Sequence[Key]:
    """One's own keys, oldest first; for the owner account those of any user, or with `*` of all."""
    return await engine.keys(user)


@router.post(
    "/keys",
    response_model=NewKeyAnswer,
    status_code=201,
    responses=problems(),
    dependencies=[ShownOnce],
)
async def create_key(body: KeyBody, engine: EngineOf) -> NewKey:
    """Make a key; its secret is in this answer and nowhere else."""
    return await engine.create_key(body.user, label=body.label, scopes=body.scopes, expires=body.expires)


@router.delete("/keys/{key}", response_model=KeyAnswer, responses=problems())
async def revoke_key(key: IdInPath, engine: EngineOf) -> Key:
    """End a key's validity for the very next request."""
    return await engine.revoke_key(key)


@router.post(
    "/keys/{key}/rotate",
    response_model=NewKeyAnswer,
    status_code=201,
    responses=problems(),
    dependencies=[ShownOnce],
)
async def rotate_key(key: IdInPath, engine: EngineOf) -> NewKey:
    """A new secret with the same label, scopes and expiry; the old one is revoked."""
    return await engine.rotate_key(key)
