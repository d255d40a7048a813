"""Listening to channels as one person: to what was granted, and to nothing else; chats among it."""

from collections.abc import Iterable
from typing import Any

from conspectus.model.chat import ChatRequest, Failure
from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.permission_doing import Door, outcome
from tests.support.permission_model import Paper, Visitor
from tests.support.permission_streaming import Check, Streaming

BUDGET = 300
MOST = 1_000


class Listening(Streaming):
    """The same history, with ears. `model` is the chat model of the store, if it has one."""

    def __init__(
        self, door: Door, owner: Any, seed: int, *, check: Check, model: ScriptedChatModel | None = None
    ) -> None:
        super().__init__(door, owner, seed, check=check)
        self._model = model

    async def listen(self, who: Visitor, view: Any) -> list[str]:
        """Ask channels and for messages in every way there is; the answers, without what was asked for."""
        papers = list(self.world.papers.values())
        messages: list[str] = []
        for paper in self.chance.sample(papers, min(3, len(papers))):
            word = self.chance.choice(paper.words[:2])
            seen = self.world.sees_paper(who.user.id, paper)
            answers = [
                *await self._channel(who, view, paper, seen=seen),
                await self._asked(who, view, paper, word, seen=seen),
                await self._chatted(view, paper, word, seen=seen),
            ]
            mine = set() if seen else {paper.id, paper.key, paper.source, paper.collection, word}
            messages += [_blanked(answer, mine) for answer in answers]
        messages.append(repr(await self._texts(who, view, papers)))
        return messages

    async def _channel(self, who: Visitor, view: Any, paper: Paper, *, seen: bool) -> list[Any]:
        """What was said last, a message by its key, and the chain of it."""
        location = {"collection": paper.collection}
        answers = []
        for work in (
            view.channels.list_messages(channel=paper.source, limit=MOST, **location),
            view.documents.get_by_key(paper.key, source=paper.source, **location),
            view.channels.get_reply_chain(paper.id),
        ):
            outcome_name, answer = await outcome(work)
            assert outcome_name == ("ok" if seen else "NotFound"), answer
            answers.append(answer)
        if seen:
            latest, document, chain = answers
            here = [message for message in self.world.papers.values() if message.source == paper.source]
            assert {message.document.id for message in latest} == {paper.id for paper in here}
            assert document.id == paper.id
            assert paper.id in {message.document.id for message in chain.messages}
            self._all_visible(who, (message.document.id for message in chain.messages))
        return answers

    async def _asked(self, who: Visitor, view: Any, paper: Paper, word: str, *, seen: bool) -> Any:
        """What a question in the channel gets, with other channels or without."""
        question: dict[str, Any] = {
            "query": self.chance.choice([word, "anything"]),
            "channel": paper.source,
            "collection": paper.collection,
            "related": self.chance.random() < 0.5,
            "min_similarity": self.chance.choice([None, 0.0]),
            "thread_messages": self.chance.choice([0, 8]),
        }
        outcome_name, window = await outcome(view.channels.window(max_tokens=BUDGET, **question))
        assert outcome_name == ("ok" if seen else "NotFound"), window
        if seen:
            self._all_visible(who, (message.id for message in window.messages))
            if not question["related"]:
                assert {message.source for message in window.messages} <= {paper.source}
        return window

    async def _chatted(self, view: Any, paper: Paper, word: str, *, seen: bool) -> Any:
        """What the chat model is sent, and what comes back."""
        if self._model is None:
            return None
        self._model.asked.clear()
        near = paper.collection if seen and self.chance.random() < 0.5 else "*"
        events = [
            event
            async for event in view.chat.stream(
                ChatRequest(f"What of {word}?", collection=near, min_similarity=None)
            )
        ]
        assert not any(isinstance(event, Failure) for event in events)
        assert self._model.asked
        return [events, list(self._model.asked)]

    async def _texts(self, who: Visitor, view: Any, papers: list[Paper]) -> Any:
        """The texts of a few documents at once, of which some are hidden or not there."""
        sample = self.chance.sample(papers, min(4, len(papers)))
        texts = await view.documents.get_texts([*(paper.id for paper in sample), self.ghost()])
        assert set(texts) == {paper.id for paper in sample if self.world.sees_paper(who.user.id, paper)}
        return texts

    def _all_visible(self, who: Visitor, documents: Iterable[str]) -> None:
        papers = [self.world.papers[document] for document in documents]
        assert all(self.world.sees_paper(who.user.id, paper) for paper in papers)


def _blanked(answer: Any, ids: set[str]) -> str:
    """What an answer says but for the names and words that it was asked for by."""
    text = repr(answer)
    for name in ids:
        text = text.replace(name, "ASKED")
    return text
