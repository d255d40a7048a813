"""A stream of numbered scenes, and a model that says which ones it was asked about."""

import re
from collections.abc import Sequence

from conspectus.model.captions import NewCaption
from conspectus.model.results import Message
from conspectus.testing.chat_models import ScriptedChatModel

SCENE = re.compile(r"scene \d+")


def indexed(*indexes: int) -> list[NewCaption]:
    """One caption a minute."""
    return [NewCaption(f"scene {index}.", 60.0 * index, 60.0 * index + 60, index=index) for index in indexes]


def scenes(*numbers: int) -> list[str]:
    """Their names."""
    return [f"scene {number}" for number in numbers]


def material(messages: Sequence[Message]) -> list[str]:
    """The scenes that a question is about."""
    return SCENE.findall(messages[-1].content.partition("</retrieved>")[0])


def told(messages: Sequence[Message]) -> list[str]:
    """Answers with what was to be summarised, in short."""
    return [f"[{', '.join(dict.fromkeys(material(messages)))}]"]


def asked_about(model: ScriptedChatModel) -> list[list[str]]:
    """The scenes of each question, in the order in which they were put."""
    return [material(request.messages) for request in model.asked]
