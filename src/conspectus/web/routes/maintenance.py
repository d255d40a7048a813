"""The store as a whole."""

from conspectus.model.reports import CheckReport, Status
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.maintenance import CheckAnswer, StatusAnswer

router = Section("upkeep")


@router.get("/status", response_model=StatusAnswer, responses=problems())
async def status(engine: EngineOf) -> Status:
    """Sizes and counts of all collections that can be seen as a whole."""
    return await engine.maintenance.status()


@router.get("/check", response_model=CheckAnswer, responses=problems(), dependencies=[Unhurried])
async def check(engine: EngineOf) -> CheckReport:
    """Compare records and indexes, and let the database check itself; nothing is repaired."""
    return await engine.maintenance.check()
