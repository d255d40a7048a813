"""Users, groups, API keys, grants, and the session of a browser."""

from typing import Self

from fastapi import Request, Response
from pydantic import Field, model_validator

from conspectus.model.access import Person
from conspectus.model.parameters import MAX_ID
from conspectus.operations.access import ACCESS_OPERATIONS
from conspectus.operations.identities import IDENTITY_OPERATIONS
from conspectus.operations.keys import KEY_OPERATIONS
from conspectus.operations.logins import LOGIN_OPERATIONS
from conspectus.operations.people import PEOPLE_OPERATIONS
from conspectus.web.auth import SESSION_TOKEN, cookie_token, require_same_origin, set_session
from conspectus.web.dependencies import EngineOf
from conspectus.web.openapi import OPEN, ReadOnly, Section
from conspectus.web.operation_routes import add_routes
from conspectus.web.schemas.base import RequestModel

router = Section("people")
add_routes(router, PEOPLE_OPERATIONS)
keys = Section("keys")
add_routes(keys, KEY_OPERATIONS)
logins = Section("logins")
add_routes(logins, LOGIN_OPERATIONS)
identities = Section("identities")
add_routes(identities, IDENTITY_OPERATIONS)
access = Section("access")
add_routes(access, ACCESS_OPERATIONS)
router.routes.extend((*keys.routes, *logins.routes, *identities.routes, *access.routes))


class SessionBody(RequestModel):
    """An API key or an invitation, with which a browser logs in."""

    key: str | None = Field(None, min_length=1, max_length=MAX_ID, examples=["csp_..."])
    invitation: str | None = Field(
        None, min_length=1, max_length=MAX_ID, description="Token of an invitation.", examples=["csi_..."]
    )

    @model_validator(mode="after")
    def require_one(self) -> Self:
        """Raise ValueError unless there is exactly one of both."""
        if (self.key is None) == (self.invitation is None):
            raise ValueError("give either a key or an invitation")
        return self


@router.post("/session", openapi_extra=OPEN, dependencies=[ReadOnly])
async def create_session(body: SessionBody, request: Request, response: Response, engine: EngineOf) -> Person:
    """Log a browser in: start a session, whose token pages of this server send in a cookie."""
    person = await engine.people.whoami()
    token = request.scope["state"].get(SESSION_TOKEN)
    if token is None and person.key is not None:
        token = await request.app.state.sessions.start(person)
    if token is not None:
        set_session(response, request.scope, token, own_address=request.app.state.own_address)
    return person


@router.delete("/session", status_code=204, openapi_extra=OPEN, dependencies=[ReadOnly])
async def delete_session(request: Request) -> Response:
    """Log a browser out: end its session, and delete its cookie."""
    if token := cookie_token(request.headers):
        require_same_origin(request.scope)
        await request.app.state.sessions.end(token)
    answer = Response(status_code=204)
    set_session(answer, request.scope, None, own_address=request.app.state.own_address)
    return answer
