"""Conspectus, the context engine for language models: find, rank, pack and explain context.

async with conspectus.open("notes") as engine:
    await engine.add("The meeting moved to Thursday.", wait=True)
    window = await engine.window("When is the meeting?", 200)

With `conspectus.connect("http://localhost:8642", key=...)` in place of `open`, the same code asks a server.
"""

from conspectus import sync
from conspectus.bootstrap import open
from conspectus.client import RemoteEngine
from conspectus.client import open as connect
from conspectus.engine import Engine
from conspectus.errors import ConspectusError
from conspectus.model.chat import ChatRequest
from conspectus.model.conversation import ChannelQuestion, NewMessage
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, Or, Overlaps
from conspectus.model.query import Budget, Query, Situation
from conspectus.model.records import Document, NewDocument, Period
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.model.video import (
    CaptionRange,
    NewAlert,
    NewCaption,
    NewEvent,
    NewStream,
    SummaryRequest,
    VideoQuestion,
)
from conspectus.settings import Settings

__all__ = [
    "And",
    "Between",
    "Budget",
    "CaptionRange",
    "ChannelQuestion",
    "ChatRequest",
    "ConspectusError",
    "ContextWindow",
    "Document",
    "Engine",
    "Eq",
    "Exists",
    "Filter",
    "Hit",
    "In",
    "NewAlert",
    "NewCaption",
    "NewDocument",
    "NewEvent",
    "NewMessage",
    "NewStream",
    "Not",
    "Or",
    "Overlaps",
    "Period",
    "Query",
    "RemoteEngine",
    "Retrieval",
    "Settings",
    "Situation",
    "SummaryRequest",
    "VideoQuestion",
    "connect",
    "open",
    "sync",
]
