"""What the store says about itself."""

from typing import Literal

from conspectus.web.schemas.base import ResponseModel


class ReindexedAnswer(ResponseModel):
    """The collection whose index was built anew."""

    collection: str


class HealthAnswer(ResponseModel):
    """How the server is."""

    status: Literal["alive", "ready"]
