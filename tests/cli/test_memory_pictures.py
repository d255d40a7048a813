"""How memories look on a terminal."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from conspectus.cli.memory import draw_recalled_memories, memories_picture
from conspectus.model.memory import NewMemory, Scope
from tests.memories import store

ANN = Scope("ann", "helper", "a conversation with a name that takes its room")
SAID = [NewMemory("I moved to the sea. " * 9, role="user", speaker="Ann"), NewMemory("No.", kind="note")]


@pytest.mark.parametrize("width", [60, 80])
async def test_ids_can_be_copied_at_any_width(tmp_path: Path, width: int) -> None:
    async with store(tmp_path) as engine:
        ids = [memory.id for memory in await engine.memory.add(SAID, scope=ANN)]
        await engine.memory.add("Elsewhere.", scope=Scope("ann"))
        listed = await engine.memory.list(scope=Scope("ann"))
        recalled = await engine.memory.recall("Who moved to the sea?", scope=ANN)
    for picture in (memories_picture(listed.memories), draw_recalled_memories(recalled.memories)):
        file = io.StringIO()
        Console(file=file, width=width, color_system=None).print(picture)
        lines = file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert any(ids[0] in line for line in lines)
        assert "I moved to the sea. I moved to the sea." in file.getvalue()
