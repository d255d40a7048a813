"""Operations on channels: messages and their threads."""

from typing import Final

from conspectus.engine.channels import ChannelService
from conspectus.engine.documents import DocumentService
from conspectus.operations.operation import Operation

CHANNEL_OPERATIONS: Final = (
    Operation(ChannelService.latest, "GET", "/messages", id="latest_messages"),
    Operation(ChannelService.chain, "GET", "/documents/{document}/thread", id="context_chain"),
    Operation(DocumentService.find, "GET", "/documents/by-key", id="find_document"),
)
