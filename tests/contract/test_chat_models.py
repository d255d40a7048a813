"""Chat models against the same behaviour: the scripted one, and the adapter before a server."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.support.chat_server import ChatCall, ChatServer, stumbling

from conspectus.errors import ChatUnreachable
from conspectus.model.results import Message
from conspectus.providers.chat_model import HostedChatModel
from conspectus.testing.chat_model_contract import ChatModelContract, Says, Scene
from conspectus.testing.chat_models import ScriptedChatModel


class ScriptedScene:
    """The scripted model; what is planned holds for one answer."""

    def __init__(self) -> None:
        self.model = ScriptedChatModel()

    def script(self, says: Says, *, tells: bool = True) -> None:
        self.model.says, self.model.tells = says, tells

    def break_off(self, after: int) -> None:
        self.model.after = after

        def says(messages: Sequence[Message]) -> Sequence[str]:
            self.model.fails = None if self.model.fails else ChatUnreachable("scripted", "broke off")
            return ["Hello", " world"]

        self.model.says = says

    def hang_after(self, after: int) -> None:
        self.model.after, self.model.hangs = after, True

    async def wait_until_hanging(self) -> None:
        await self.model.hanging.wait()

    async def wait_until_left(self) -> None:
        assert (self.model.open, self.model.broken_off) == (0, 1)
        self.model.hangs = False

    def list_requests(self) -> list[tuple[list[Message], int, float | None]]:
        return [
            ([*request.messages], request.max_tokens, request.temperature) for request in self.model.asked
        ]


class ServedScene:
    """The adapter and a server that speaks OpenAI's protocol."""

    def __init__(self, model: HostedChatModel, server: ChatServer) -> None:
        self.model = model
        self.server = server

    def script(self, says: Says, *, tells: bool = True) -> None:
        self.server.says = lambda call: says(messages_of(call))
        self.server.tells = tells

    def break_off(self, after: int) -> None:
        self.server.plan.append(stumbling("cut", after=after))

    def hang_after(self, after: int) -> None:
        self.server.plan.append(stumbling("silent", after=after))

    async def wait_until_hanging(self) -> None:
        await self.server.silent.wait()

    async def wait_until_left(self) -> None:
        async with asyncio.timeout(30):
            await self.server.leaving.wait()
        assert self.server.left == 1

    def list_requests(self) -> list[tuple[list[Message], int, float | None]]:
        return [
            (messages_of(call), call.body["max_tokens"], call.body.get("temperature"))
            for call in self.server.calls
        ]


def messages_of(call: ChatCall) -> list[Message]:
    return [Message(message["role"], message["content"]) for message in call.body["messages"]]


class TestScripted(ChatModelContract):
    @pytest.fixture
    def scene(self) -> Scene:
        return ScriptedScene()


class TestHosted(ChatModelContract):
    @pytest.fixture
    async def scene(self) -> AsyncIterator[Scene]:
        async with ChatServer() as server:
            model = HostedChatModel("openai:small", url=server.url, seconds=60)
            yield ServedScene(model, server)
            await model.close()
