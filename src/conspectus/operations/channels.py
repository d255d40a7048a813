"""Operations on channels: messages and their threads."""

from typing import Final

from conspectus.engine.channels import ChannelService
from conspectus.engine.documents import DocumentService
from conspectus.model.channels import ChannelQuery, NewMessage
from conspectus.operations.operation import Operation

CHANNEL_OPERATIONS: Final = (
    Operation(
        ChannelService.add_messages,
        "POST",
        "/messages",
        unhurried=True,
        status=201,
        listed={"messages": NewMessage},
        defaults={"link": True, "wait": False},
    ),
    Operation(
        ChannelService.window,
        "POST",
        "/messages/context",
        fields_of=ChannelQuery,
        reads=True,
        id="channel_context",
    ),
    Operation(ChannelService.list_messages, "GET", "/messages"),
    Operation(ChannelService.get_reply_chain, "GET", "/documents/{document}/thread"),
    Operation(DocumentService.get_by_key, "GET", "/documents/by-key", id="get_document_by_key"),
)
