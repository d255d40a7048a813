"""Summaries of streams of a server."""

import json
from dataclasses import replace

from conspectus.client.encode import encoded
from conspectus.client.request import Request, ask, get, post, remove
from conspectus.client.streaming import Streaming, in_stream, range_query
from conspectus.errors import NotFound
from conspectus.model.jobs import Job
from conspectus.model.records import Json
from conspectus.model.streams import Summary, SummaryRequest
from conspectus.ports import Progress
from conspectus.streams.summary_requests import request_to_json


class Summarising(Streaming):
    """What a stream, or a stretch of one, comes to."""

    async def summarise(self, request: SummaryRequest, *, progress: Progress | None = None) -> Summary:
        """The summary of the captions of a range; what was summarised before is not asked for again.

        A batch that fails is among the `failures` of the result, and left out of it. Without a chat model, or
        if asked to, captions are chosen instead of sentences written. Raises the error of the model where no
        batch could be summarised, or all of them together; InvalidInput, TooLarge or NotFound.
        """
        if progress is not None:
            progress("summarising", 0, 0)
        asked = _at(ask(in_stream(request.stream, "summary"), _body(request)), request.collection)
        return await self._channel.one(Summary, replace(asked, unhurried=True))

    async def summary(self, request: SummaryRequest) -> Summary | None:
        """The same as far as it is kept, without asking a model; None if it was not made, or not lately.

        A batch that is not kept is among the failures.
        """
        told = _body(request)
        schema = told.pop("schema", None)
        del told["range"]
        query = {**told, **range_query(request.range), "collection": encoded(request.collection)}
        query["schema"] = None if schema is None else json.dumps(schema, ensure_ascii=False)
        try:
            return await self._channel.one(Summary, get(in_stream(request.stream, "summary"), **query))
        except NotFound as fault:
            if fault.kind != "summary":
                raise
            return None

    async def start_summary(self, request: SummaryRequest) -> Job:
        """Have a summary made by a job, which is returned at once; `summary` then gives it."""
        asked = post(in_stream(request.stream, "summary"), {**_body(request), "wait": False})
        return await self._channel.one(Job, _at(asked, request.collection))

    async def keep_summarised(
        self, request: SummaryRequest | None, *, stream: str, collection: str = "default"
    ) -> None:
        """Summarise each batch of a live stream as soon as it is full, and the last when the stream ends.

        It ends when `put_stream` says that the stream is not live any more, or with None.
        """
        path = in_stream(stream, "summary", "standing")
        if request is None:
            await self._channel.answer(remove(path, collection=collection))
            return
        await self._channel.answer(_at(Request("PUT", path, _body(request), writes=True), collection))


def _at(request: Request, collection: str) -> Request:
    return replace(request, query={"collection": str(encoded(collection))})


def _body(request: SummaryRequest) -> dict[str, Json]:
    told = request_to_json(request)
    del told["stream"], told["collection"]
    return {name: encoded(each) for name, each in told.items()}
