"""The current user."""

from conspectus.model.access import Scope
from conspectus.web.schemas.base import ResponseModel


class PersonAnswer(ResponseModel):
    """Who a request is answered for, and what its key may be used for."""

    id: str
    name: str
    owner: bool
    scopes: list[Scope]
