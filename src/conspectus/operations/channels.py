"""The operations on channels, each declared once."""

from typing import Final

from conspectus.engine.channels import ChannelService
from conspectus.engine.documents import DocumentService
from conspectus.model.channels import ChannelQuery, NewMessage
from conspectus.operations.operation import Operation

_BY_KEY: Final = "/documents/by-key"

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
    Operation(DocumentService.get_by_key, "GET", _BY_KEY, id="get_document_by_key"),
    Operation(
        DocumentService.delete_by_key,
        "DELETE",
        _BY_KEY,
        unhurried=True,
        id="delete_document_by_key",
        for_models="named",
    ),
)
