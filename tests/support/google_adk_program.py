"""What an agent of Google ADK does with the memory service; test_google_adk.py runs it where that is."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory
from google.genai.types import Content, FunctionCall, Part

import conspectus
from conspectus.integrations.google_adk import ConspectusMemoryService
from conspectus.model.memory import Scope
from conspectus.testing.embedders import HashedEmbedder

HERE = {"app_name": "app", "user_id": "ann"}
CALL = Part(function_call=FunctionCall(name="find", args={}))


def said(text: str, *, author: str = "user", role: str = "user") -> Event:
    content = Content(role=role, parts=[Part(text=text)])
    return Event(id=text, author=author, content=content, timestamp=1_790_000_000.0)


async def found(service: ConspectusMemoryService, query: str, **where: str) -> list[MemoryEntry]:
    return list((await service.search_memory(**{**HERE, **where}, query=query)).memories)


def texts(entries: list[MemoryEntry]) -> list[str]:
    return sorted(memory.content.parts[0].text for memory in entries)


async def sessions(service: ConspectusMemoryService, engine: conspectus.Engine) -> dict[str, Any]:
    """A session that is added twice, asked for by its user, another user and another app."""
    nothing = await found(service, "backups")
    events = [said("When do backups run?"), said("Backups run at two.", author="agent", role="model")]
    calls = [Event(id="call", author="agent", content=Content(role="model", parts=[CALL]))]
    session = Session(id="s", app_name="app", user_id="ann", events=[*events, *calls])
    await service.add_session_to_memory(session)
    await service.add_session_to_memory(session)
    entries = await found(service, "when do backups run?")
    [answer] = [memory for memory in entries if memory.author == "agent"]
    stored = await engine.memory.list(scope=Scope("ann", "app", "s"))
    strangers: list[dict[str, str]] = [{"user_id": "bob"}, {"app_name": "b"}]
    return {
        "nothing": nothing,
        "texts": texts(entries),
        "answer": [answer.content.role, answer.timestamp],
        "others": [await found(service, "backups", **stranger) for stranger in strangers],
        "kept": len(stored.memories),
    }


async def notes(service: ConspectusMemoryService) -> dict[str, Any]:
    """A memory that is replaced, and deleted by another user and by its own."""
    contents = [Content(parts=[Part(text=f"Ann likes {what}.")]) for what in ("tea", "coffee")]
    for content in contents:
        entry = MemoryEntry(id="k", content=content, custom_metadata={"n": 1})
        await service.add_memory(**HERE, memories=[entry], custom_metadata={"m": 2})
    [entry] = [memory for memory in await found(service, "what does Ann like?") if memory.custom_metadata]
    await service.delete_memory(app_name="app", user_id="bob", memory_id=entry.id)
    await service.delete_memory(**HERE)
    still = texts(await found(service, "coffee", user_id="ann"))
    await service.delete_memory(**HERE, memory_id=entry.id)
    return {
        "note": [entry.content.parts[0].text, entry.custom_metadata],
        "still": "Ann likes coffee." in still,
        "gone": "Ann likes coffee." not in texts(await found(service, "coffee")),
    }


class Asking(BaseLlm):
    """A model that loads memory, and answers with what that returned."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        call = FunctionCall(name="load_memory", args={"query": "When do backups run?"})
        part = Part(function_call=call)
        if last.function_response:
            part = Part(text=str(last.function_response.response))
        yield LlmResponse(content=Content(role="model", parts=[part]))


async def agent(service: ConspectusMemoryService) -> str:
    """What an agent says that loads memory in a new session."""
    store = InMemorySessionService()
    llm_agent = LlmAgent(name="agent", model=Asking(model="m"), tools=[load_memory])
    runner = Runner(app_name="app", agent=llm_agent, session_service=store, memory_service=service)
    await store.create_session(app_name="app", user_id="ann", session_id="now")
    message = Content(role="user", parts=[Part(text="When?")])
    events = [event async for event in runner.run_async(user_id="ann", session_id="now", new_message=message)]
    return str(events[-1].content.parts[0].text)


async def main(folder: Path) -> None:
    async with conspectus.open(folder, embedder=HashedEmbedder()) as engine:
        service = ConspectusMemoryService(engine)
        done = {**await sessions(service, engine), **await notes(service), "said": await agent(service)}
    print(json.dumps(done))


asyncio.run(main(Path(sys.argv[1])))
