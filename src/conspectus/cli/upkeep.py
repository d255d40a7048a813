"""status, check, reindex and reembed."""

from typing import Annotated

import typer

from conspectus.cli.failures import DIFFERENT
from conspectus.cli.options import Common
from conspectus.cli.output import plain, progress, show
from conspectus.cli.session import opened
from conspectus.cli.tables import check_table, status_table
from conspectus.model.records import Json


def status(common: Common) -> None:
    """Show where the data are and how much there is, of all collections or of one."""
    with opened(common) as session:
        report = session.engine.status(collection=common.collection)
    show(report, status_table(report), as_json=common.json)


def check(common: Common) -> None:
    """Compare records and index and name every difference; nothing is repaired."""
    with opened(common) as session:
        report = session.engine.check()
    found: dict[str, Json] = {
        "clean": report.clean,
        "records": plain(report.records),
        "index": plain(report.index),
    }
    show(found, check_table(report), as_json=common.json)
    if not report.clean:
        raise typer.Exit(DIFFERENT)


def reindex(common: Common) -> None:
    """Build the index anew from the records; the old one answers meanwhile."""
    with opened(common) as session, progress() as bars:
        session.engine.reindex(collection=session.collection, progress=bars)
        name = session.collection
    show({"collection": name, "reindexed": True}, f"built the index of {name} anew", as_json=common.json)


def reembed(
    embedder: Annotated[str, typer.Argument(help="minilm, static:PATH or vendor:model@dimensions.")],
    common: Common,
) -> None:
    """Move the collection to another embedder; the old one answers until all is done."""
    with opened(common) as session, progress() as bars:
        count = session.engine.reembed(embedder, collection=session.collection, progress=bars)
        name = session.collection
    show(
        {"collection": name, "embedded": count},
        f"embedded {count} chunks of {name} anew",
        as_json=common.json,
    )
