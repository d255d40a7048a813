"""What random people say to each other in the sources of a store, and take back."""

from typing import Any

from conspectus.model.channels import NewMessage
from tests.support.permission_doing import Doing
from tests.support.permission_model import RANK, Paper, Visitor


class Talking(Doing):
    """The same history, in which people also talk."""

    async def step(self) -> None:
        """One random thing, often something that is said."""
        if self.chance.random() < 0.3:
            await self.chance.choice((self.say, self.say, self.say_anew, self.take_back))()
        else:
            await super().step()

    async def begin(self) -> None:
        """A few things were said before."""
        await super().begin()
        for _ in range(4):
            await self.say()

    async def say(self) -> None:
        """Someone posts a message, as an answer to another one or not."""
        room = self._some_room()
        if room is None or not room.sources:
            return
        source = self.chance.choice(list(room.sources))
        who = self.guest(room.id, source)
        if self.world.sees_room(who.user.id, room.id):
            near = [paper.key for paper in self._messages() if paper.source == source]
            answered = self.chance.choice([*near, self.word(), None, None])
            words = (self.word(), self.word(), self.word())
            await self._post(who, Paper("", room.id, source, self.word(), None, words, True), answered)

    async def say_anew(self) -> None:
        """Someone edits a message by posting its key again."""
        for paper in self._some_messages():
            who = self.guest(paper.collection, paper.source)
            if self.world.sees_room(who.user.id, paper.collection):
                paper = Paper(paper.id, paper.collection, paper.source, paper.key, None, paper.words, True)
                paper.words = (self.word(), self.word(), *paper.words[2:])
                await self._post(who, paper, None)

    async def take_back(self) -> None:
        """Someone deletes a message by its key."""
        for paper in self._some_messages():
            who = self.guest(paper.collection, paper.source)
            rank = self.world.rank(who.user.id, paper.collection, paper.source)
            expected = self._judged(who, seen=rank > 0, able=rank >= RANK["editor"], scope="write")
            receipt = await self._expect(expected, _deleted(await self.door.enter(who), paper))
            if expected == "ok":
                gone = self.world.tree({paper.id})
                assert receipt.documents == len(gone)
                self.world.drop_papers(gone)

    async def _post(self, who: Visitor, paper: Paper, answered: str | None) -> None:
        """Post a message, which is new where it has no id yet; `metadata.word` is its first word."""
        rank = self.world.rank(who.user.id, paper.collection, paper.source)
        allowed = who.has("read", "write") and rank >= RANK["editor"]
        first, second, author, *_ = paper.words
        said = NewMessage(
            f"Of {first} and {second}.",
            key=paper.key,
            author=author,
            reply_to=answered,
            metadata={"word": first},
        )
        view = await self.door.enter(who)
        waits = self.world.rooms[paper.collection].embeds
        work = view.channels.add_messages(said, channel=paper.source, collection=paper.collection, wait=waits)
        written = await self._expect("ok" if allowed else self._refused(who, paper), work)
        if allowed:
            before = self.world.papers.get(paper.id)
            [paper.id] = [message.id for message in written]
            assert before is None or before.id == paper.id
            paper.parent = None
            paper.words = paper.words if paper.key in paper.words else (*paper.words, paper.key)
            self.world.papers[paper.id] = paper

    def _messages(self) -> list[Paper]:
        return [paper for paper in self.world.papers.values() if paper.message]

    def _some_messages(self) -> list[Paper]:
        messages = self._messages()
        return [self.chance.choice(messages)] if messages else []


async def _deleted(view: Any, paper: Paper) -> Any:
    document = await view.documents.get_by_key(paper.key, source=paper.source, collection=paper.collection)
    assert document.id == paper.id
    return await view.documents.delete(document.id)
