"""Write the OpenAPI document, from which the TypeScript client is generated."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from conspectus import bootstrap
from conspectus.settings import Settings
from conspectus.web.app import application


async def read_document() -> str:
    """Return the document as a server answers it."""
    settings = Settings()
    with tempfile.TemporaryDirectory() as folder:
        async with bootstrap.open(folder, settings=settings) as engine:
            return json.dumps(application(engine, settings).openapi())


if __name__ == "__main__":
    path, text = Path(sys.argv[1]), asyncio.run(read_document())
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
