"""Channels: messages, archives, and searches in a channel."""

from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Query, UploadFile

from conspectus.model.channels import ArchiveKind, ImportReport
from conspectus.model.records import Receipt
from conspectus.operations import CHANNEL_OPERATIONS
from conspectus.web.bodies import handed_in
from conspectus.web.deps import EngineOf, Purge, Unhurried
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answered
from conspectus.web.schemas.base import NAME

router = Section("conversations")
Named = Annotated[str, Query(min_length=1, max_length=NAME)]
Collection = Annotated[str, Query(min_length=1, max_length=NAME)]


@router.delete("/messages", response_model=answered(Receipt), responses=problems(), dependencies=[Unhurried])
async def delete_message(
    channel: Named, key: Named, engine: EngineOf, *, collection: Collection = "default", purge: Purge = False
) -> Receipt:
    """Delete a message by its key; what others answered stays."""
    found = await engine.documents.get_by_key(key, source=channel, collection=collection)
    return await engine.documents.delete(found.id, purge=purge)


@router.post(
    "/messages/import",
    response_model=answered(ImportReport),
    responses=problems(415),
    dependencies=[Unhurried],
)
async def import_messages(
    file: Annotated[UploadFile, File(description="The export, as the platform makes it.")],
    engine: EngineOf,
    *,
    collection: Annotated[str, Form(min_length=1, max_length=NAME)] = "default",
    kind: Annotated[ArchiveKind | None, Form()] = None,
    link: Annotated[bool, Form()] = True,
) -> ImportReport:
    """Import an export of Slack, Discord or IRC, or messages as JSON lines."""
    with TemporaryDirectory() as folder:
        [upload] = await handed_in([file], folder)
        return await engine.channels.import_archive(upload, kind=kind, collection=collection, link=link)


add_routes(router, CHANNEL_OPERATIONS)
