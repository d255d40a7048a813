"""Summaries of streams of a server."""

import json
from dataclasses import replace

from conspectus.client.encode import encoded
from conspectus.client.operations import derived
from conspectus.client.request import Request, ask, get, post, remove
from conspectus.client.service import RemoteService
from conspectus.client.streams import in_stream, range_query
from conspectus.engine.summaries import SummaryService
from conspectus.errors import NotFound
from conspectus.model.jobs import Job
from conspectus.model.records import Json
from conspectus.model.streams import Summary, SummaryRequest
from conspectus.ports import Progress
from conspectus.streams.summary_runner import request_to_json


@derived
class RemoteSummaries(RemoteService, SummaryService):
    """Summaries of streams of a server."""

    async def summarize(self, request: SummaryRequest, *, progress: Progress | None = None) -> Summary:
        if progress is not None:
            progress("summarising", 0, 0)
        asked = _at(ask(in_stream(request.stream, "summary"), _body(request)), request.collection)
        return await self._channel.one(Summary, replace(asked, unhurried=True))

    async def get(self, request: SummaryRequest) -> Summary | None:
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

    async def start_job(self, request: SummaryRequest) -> Job:
        asked = post(in_stream(request.stream, "summary"), {**_body(request), "wait": False})
        return await self._channel.one(Job, _at(asked, request.collection))

    async def summarize_live(
        self, request: SummaryRequest | None, *, stream: str, collection: str = "default"
    ) -> None:
        path = in_stream(stream, "summary", "live")
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
