"""Messages of LlamaIndex as turns of a conversation."""

import json

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from conspectus.errors import InvalidInput
from conspectus.integrations.chat_messages import Item

FORM = "llama_index"


def item_of(message: ChatMessage) -> Item:
    """Return a message as JSON. Raises InvalidInput."""
    try:
        item: Item = json.loads(message.model_dump_json())
    except ValueError as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault
    return item


def message_of(item: Item) -> ChatMessage:
    """Return the message of an item."""
    if "blocks" in item:
        return ChatMessage.model_validate(item)
    roles = {role.value for role in MessageRole}
    role = item["role"] if item["role"] in roles else MessageRole.USER
    return ChatMessage(role=role, content=item["content"])
