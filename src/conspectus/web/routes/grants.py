"""Roles given and taken."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from conspectus.model.access import Grant, GranteeKind, Principal
from conspectus.web.deps import CollectionName, EngineOf, NamedInQuery
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.base import IDENTIFIER
from conspectus.web.schemas.people import GrantAnswer, GrantBody, RevokedAnswer

router = Section("grants", prefix="/collections/{collection:path}/grants")


@router.get("", response_model=list[GrantAnswer], responses=problems())
async def list_grants(
    collection: CollectionName, engine: EngineOf, source: NamedInQuery = None
) -> Sequence[Grant]:
    """All roles on a collection and its sources, or those on one source."""
    return await engine.grants(collection, source=source)


@router.put("", response_model=GrantAnswer, responses=problems())
async def put_grant(collection: CollectionName, body: GrantBody, engine: EngineOf) -> Grant:
    """Give a role, in place of another one of the same grantee there."""
    grantee = Principal(body.grantee.kind, body.grantee.id)
    return await engine.grant(collection, grantee, body.role, source=body.source)


@router.delete("", response_model=RevokedAnswer, responses=problems())
async def revoke_grant(
    collection: CollectionName,
    engine: EngineOf,
    kind: GranteeKind,
    grantee: Annotated[str, Query(alias="id", min_length=1, max_length=IDENTIFIER)],
    *,
    source: NamedInQuery = None,
) -> RevokedAnswer:
    """Take a role away for the very next request."""
    taken = await engine.revoke(collection, Principal(kind, grantee), source=source)
    return RevokedAnswer(revoked=taken)
