"""What every chat model must do. Subclass `ChatModelContract`, give it `scene`, let pytest collect it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias

import pytest

from conspectus.errors import ChatUnreachable, InvalidInput
from conspectus.model.chat import Delta, ToolCall, Usage
from conspectus.model.results import Message
from conspectus.ports.chat import ChatModel

TALK = (
    Message("system", "Be brief."),
    Message("user", "Who wrote it?"),
    Message("assistant", "Nobody knows."),
    Message("user", "And when?"),
)
ASK = (Message("user", "one two three"),)
Says: TypeAlias = Callable[[Sequence[Message]], Sequence[str]]


class Scene(Protocol):
    """A model, and a hand on what it says; a word that it reads or a piece that it says costs a token."""

    @property
    def model(self) -> ChatModel:
        """The adapter."""

    def script(self, says: Says, *, tells: bool = True) -> None:
        """What is said from now on, and whether the tokens are told."""

    def break_off(self, after: int) -> None:
        """The next answer breaks off after so many pieces."""

    def hang_after(self, after: int) -> None:
        """The next answer says nothing more after so many pieces."""

    async def wait_until_hanging(self) -> None:
        """Wait until an answer hangs."""

    async def wait_until_left(self) -> None:
        """Wait until the provider has seen that nobody listens to a hanging answer any more."""

    def list_requests(self) -> list[tuple[list[Message], int, float | None]]:
        """What came so far: messages, the token limit, the temperature."""


async def answer(
    model: ChatModel, messages: Sequence[Message] = ASK, **options: Any
) -> list[Delta | ToolCall | Usage]:
    """All of an answer."""
    options = {"max_tokens": 100, **options}
    async with aclosing(model.stream(messages, **options)) as pieces:
        return [piece async for piece in pieces]


def text(pieces: Sequence[Delta | ToolCall | Usage]) -> str:
    """What was said."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Delta))


class ChatModelContract:
    """The behaviour of every chat model, as tests. Fixture to override: `scene`."""

    @pytest.fixture
    def scene(self) -> Scene:
        """The adapter with what stands behind it, closed by its fixture."""
        raise NotImplementedError

    async def test_pieces_as_they_come_then_the_tokens(self, scene: Scene) -> None:
        """Each piece by itself, in order, the usage last."""
        scene.script(lambda _: ["Pa", "ris", ", [1]\n"])
        pieces = await answer(scene.model)
        assert pieces == [Delta("Pa"), Delta("ris"), Delta(", [1]\n"), Usage(3, 3)]

    async def test_a_piece_does_not_wait_for_the_next(self, scene: Scene) -> None:
        """What was said is there while the model is silent."""
        scene.hang_after(2)
        async with aclosing(scene.model.stream(ASK, max_tokens=9)) as pieces:
            assert [await anext(pieces), await anext(pieces)] == [Delta("Hello"), Delta(" world")]

    async def test_the_model_is_asked_what_it_should_be(self, scene: Scene) -> None:
        """Roles, texts and order; the limit; a temperature only if there is one."""
        await answer(scene.model, TALK, max_tokens=77)
        await answer(scene.model, TALK[1:2], max_tokens=5, temperature=0.0)
        assert scene.list_requests() == [([*TALK], 77, None), ([TALK[1]], 5, 0.0)]

    async def test_no_more_than_asked_for(self, scene: Scene) -> None:
        """An answer ends at its limit, which is no error."""
        scene.script(lambda _: ["a"] * 50)
        assert await answer(scene.model, max_tokens=7) == [Delta("a")] * 7 + [Usage(3, 7)]

    async def test_a_provider_may_not_count(self, scene: Scene) -> None:
        """Then there is no usage, rather than a guess."""
        scene.script(lambda _: ["a", "b"], tells=False)
        assert await answer(scene.model) == [Delta("a"), Delta("b")]

    @pytest.mark.parametrize("odd", ["", " \n", "\ud800", "\u0000", "🦊日本\u202e", "word " * 20_000, "{}\\"])
    async def test_odd_texts(self, scene: Scene, odd: str) -> None:
        """Blank, broken, foreign and long messages are answered, and said as they are."""
        scene.script(lambda _: ["🦊", "日本 ", "a\r\n\n", '"\\{}', "data: [DONE]\n\n"])
        pieces = await answer(scene.model, [Message("system", odd), Message("user", odd), *ASK])
        assert text(pieces) == '🦊日本 a\r\n\n"\\{}data: [DONE]\n\n'

    @pytest.mark.parametrize(
        ("messages", "max_tokens"), [((), 5), (ASK, 0), (ASK, -1), ((Message("tool", "x"), *ASK), 5)]
    )
    async def test_what_no_model_can_be_asked(
        self, scene: Scene, messages: Sequence[Message], max_tokens: int
    ) -> None:
        """A mistake of the caller's goes to no provider."""
        with pytest.raises(InvalidInput):
            await answer(scene.model, messages, max_tokens=max_tokens)
        assert scene.list_requests() == []

    @pytest.mark.parametrize("after", [1, 2])
    async def test_an_answer_that_breaks_off(self, scene: Scene, after: int) -> None:
        """What was said stays, then comes the error; the next answer is whole again."""
        scene.break_off(after)
        pieces: list[Delta | ToolCall | Usage] = []
        with pytest.raises(ChatUnreachable):
            async for piece in scene.model.stream(ASK, max_tokens=9):
                pieces.append(piece)
        assert pieces == [Delta("Hello"), Delta(" world")][:after]
        assert len(scene.list_requests()) == 1
        assert text(await answer(scene.model)) == "Hello world"

    @pytest.mark.parametrize("after", [1, 2])
    async def test_closing_ends_the_call(self, scene: Scene, after: int) -> None:
        """The provider sees that nobody listens any more."""
        scene.hang_after(after)
        pieces = scene.model.stream(ASK, max_tokens=9)
        for _ in range(after):
            await anext(pieces)
        await pieces.aclose()
        await scene.wait_until_left()
        assert text(await answer(scene.model)) == "Hello world"

    @pytest.mark.parametrize("after", [0, 1])
    async def test_cancelling_ends_the_call(self, scene: Scene, after: int) -> None:
        """Also while the first piece is awaited."""
        scene.hang_after(after)
        task = asyncio.create_task(answer(scene.model))
        await scene.wait_until_hanging()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await scene.wait_until_left()

    async def test_nothing_is_asked_before_somebody_listens(self, scene: Scene) -> None:
        """An answer that nobody reads costs nothing."""
        await scene.model.stream(ASK, max_tokens=9).aclose()
        assert scene.list_requests() == []

    async def test_many_answers_at_once(self, scene: Scene) -> None:
        """None gets another's pieces."""
        scene.script(lambda messages: [f"{messages[-1].content}-{number} " for number in range(20)])
        requests = [[Message("user", f"number{number}")] for number in range(30)]
        answers = await asyncio.gather(*(answer(scene.model, messages) for messages in requests))
        for number, pieces in enumerate(answers):
            assert text(pieces).split() == [f"number{number}-{position}" for position in range(20)]

    async def test_it_says_what_it_is(self, scene: Scene) -> None:
        """A name, a window, and a counter for it; closing twice is harmless."""
        assert ":" in scene.model.name
        assert scene.model.window > 0
        assert scene.model.tokenizer
        await scene.model.close()
        await scene.model.close()
