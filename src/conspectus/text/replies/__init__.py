"""Who answers whom in a chat whose platform does not say: links between messages, made as they come."""

from conspectus.text.replies.linker import Linker
from conspectus.text.replies.message_parsing import Utterance

__all__ = ["Linker", "Utterance"]
