"""Inferred reply links for chats whose platform has none, computed as messages arrive."""

from conspectus.text.replies.linker import Linker
from conspectus.text.replies.message_parsing import Utterance

__all__ = ["Linker", "Utterance"]
