"""Routes for operators of the server: outside the prefix of the API."""

from typing import Annotated, Literal

from fastapi import APIRouter, Response

from conspectus.errors import PermissionDenied
from conspectus.web.dependencies import EngineOf, of_app
from conspectus.web.health import Readiness
from conspectus.web.metrics import MEDIA_TYPE, Metrics
from conspectus.web.openapi import OPEN, operation, problems
from conspectus.web.problem_details import refuse
from conspectus.web.schemas.base import ResponseModel

router = APIRouter(tags=["server"], responses=problems(), generate_unique_id_function=operation)


class HealthAnswer(ResponseModel):
    """How the server is."""

    status: Literal["alive", "ready"]


class ReadyAnswer(HealthAnswer):
    """How the server is, and how many collections have an index that cannot be used; its log names them."""

    unavailable_collections: int


@router.get("/healthz", name="live_probe", openapi_extra=OPEN)
@router.get("/health/live", openapi_extra=OPEN)
async def live() -> HealthAnswer:
    """Answer, to show that the process lives."""
    return HealthAnswer(status="alive")


@router.get("/readyz", name="ready_probe", openapi_extra=OPEN)
@router.get("/health/ready", openapi_extra=OPEN)
async def ready(readiness: Annotated[Readiness, of_app("readiness")]) -> ReadyAnswer:
    """Tell whether the indexes follow the records, the database answers and the server is not stopping.

    It is ready if the index of some collection can be used, or if there is no collection.
    """
    obstacle = await readiness.obstacle()
    if obstacle is not None:
        refuse(503, obstacle, **{"Retry-After": "1"})
    return ReadyAnswer(status="ready", unavailable_collections=readiness.unavailable)


@router.get("/metrics", response_class=Response, responses={200: {"content": {MEDIA_TYPE: {}}}})
async def read_metrics(engine: EngineOf, metrics: Annotated[Metrics, of_app("metrics")]) -> Response:
    """Numbers for Prometheus; with a key of the owner account once there are accounts."""
    if not (await engine.people.whoami()).owner:
        raise PermissionDenied("read the metrics", "a key of the owner account")
    metrics.jobs((await engine.jobs.report()).states)
    return Response(metrics.text(), media_type=MEDIA_TYPE)
