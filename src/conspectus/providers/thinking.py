"""Thinking that a model writes before its answer, between `<think>` and `</think>`."""

from typing import Final, Literal

OPENING: Final = "<think>"
CLOSING: Final = "</think>"


class ThinkingFilter:
    """Leaves out the thinking at the beginning of a streamed answer, however its tags are cut into pieces.

    Tags later in an answer are text.
    """

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "after", "answer"] = "beginning"
        self._pending = ""

    def answer_in(self, piece: str) -> str:
        """Return what is certain to be of the answer after another piece."""
        self._pending += piece
        if self._state == "beginning":
            self._find_opening()
        if self._state == "thinking":
            self._find_closing()
        if self._state == "after":
            self._pending = self._pending.lstrip()
            self._state = "answer" if self._pending else "after"
        return self._release() if self._state == "answer" else ""

    def rest(self) -> str:
        """Return what was held back at the end of the stream, if it is not thinking."""
        return "" if self._state == "thinking" else self._release()

    def _find_opening(self) -> None:
        start = self._pending.lstrip()
        if start.startswith(OPENING):
            self._state, self._pending = "thinking", start.removeprefix(OPENING)
        elif not OPENING.startswith(start):
            self._state = "answer"

    def _find_closing(self) -> None:
        _, closing, answer = self._pending.partition(CLOSING)
        if closing:
            self._state, self._pending = "after", answer
        else:
            # The end may be the beginning of the closing tag.
            self._pending = self._pending[1 - len(CLOSING) :]

    def _release(self) -> str:
        text, self._pending = self._pending, ""
        return text
