"""Answers of the chat that are given in one piece."""

from collections.abc import Iterable

from starlette.types import Receive

from conspectus.model.chat import ChatEvent, Citations, Delta, Failure, Sources, Usage
from conspectus.web.chat_stream import ChatStream
from conspectus.web.problem_details import Refused, failed
from conspectus.web.schemas.chat import ChatAnswer


def text_of(events: Iterable[ChatEvent]) -> str:
    """The whole text; halves of surrogate pairs that came apart are put together."""
    text = "".join(event.text for event in events if isinstance(event, Delta))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def whole(stream: ChatStream, receive: Receive) -> ChatAnswer:
    """The answer with everything that was told of it. Raises Refused where there is not all of it."""
    async with stream.read_by(receive) as reader:
        events = await reader.rest()
    told = {type(event): event for event in events}
    failure = told.get(Failure)
    if isinstance(failure, Failure) and Usage not in told:
        raise Refused(failed(failure))
    return ChatAnswer.model_validate(
        {
            "answer": text_of(events),
            "sources": told.get(Sources, Sources("off")),
            "citations": told.get(Citations, Citations(())),
            "usage": told.get(Usage),
            "failure": failure,
        },
        from_attributes=True,
    )
