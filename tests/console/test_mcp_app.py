"""The MCP App: a client that shows apps gets the window of `context` with its parts, in a frame."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp.client.extension import ClientExtension, advertise
from mcp_types import CallToolResult, TextContent, TextResourceContents
from playwright.sync_api import Browser, Page, expect

from conspectus import bootstrap
from conspectus.mcp.server import APPS_EXTENSION, VIEW_KEY, build_server
from conspectus.mcp.tool import ToolOptions
from conspectus.mcp.tool_list import APP_TYPE
from conspectus.model.records import NewDocument
from conspectus.settings import Settings
from mcp import Client
from tests.console.conftest import AXE, NARROW, WIDE, WIDTHS

SCRIPT = "<script>window.owned = 1</script>"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
HOST = """
<iframe sandbox="allow-scripts" style="width: 100%; border: 0"></iframe>
<script type="application/json" id="told">TOLD</script>
<script>
  const told = JSON.parse(document.getElementById("told").textContent);
  const frame = document.querySelector("iframe");
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    if (data.method === "ui/initialize")
      send({ id: data.id, result: { protocolVersion: "2026-01-26", hostContext: { theme: "dark" } } });
    if (data.method === "ui/notifications/initialized")
      send({ method: "ui/notifications/tool-result", params: told.result });
    if (data.method === "ui/notifications/size-changed") frame.style.height = data.params.height + "px";
  });
  frame.srcdoc = told.page;
</script>
"""


async def call_context(folder: Path, apps: Sequence[ClientExtension]) -> tuple[str, CallToolResult]:
    """The page of the app that the tools name, and a result of `context` for a client."""
    async with bootstrap.open(folder, settings=Settings(embedder="none")) as engine:
        text = f"The backup runs at two. {SCRIPT}\n" * 8
        other = "A backup is restored on Friday."
        documents = [NewDocument(text, title=f"Backups {SCRIPT}", key="b"), NewDocument(other, key="r")]
        await engine.add(documents, wait=True)
        server = build_server(lambda _context: engine, ToolOptions(8_000))
        async with Client(server, extensions=apps) as client:
            tools = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
            app = (tools["context"] or {})["ui"]["resourceUri"]
            [page] = (await client.read_resource(app)).contents
            assert isinstance(page, TextResourceContents)
            assert (page.mime_type, [name for name, meta in tools.items() if meta]) == (APP_TYPE, ["context"])
            question = {"query": "when does the backup run?", "max_tokens": 900}
            return page.text, await client.call_tool("context", question)


def result_of(folder: Path, *apps: ClientExtension) -> tuple[str, CallToolResult]:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(call_context(folder, apps))).result()


def host_of(browser: Browser, folder: Path, *, narrow: bool) -> Page:
    """A client that shows the app of a result in a frame without an origin, under the policy of MCP Apps."""
    text, result = result_of(folder, advertise(APPS_EXTENSION))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    fields = {
        "page": text.replace("<head>", f"<head>{policy}", 1),
        "result": result.model_dump(mode="json", by_alias=True),
    }
    page = browser.new_page(viewport=NARROW if narrow else WIDE, reduced_motion="reduce")
    page.set_content(HOST.replace("TOLD", json.dumps(fields).replace("<", "\\u003c")))
    return page


@pytest.mark.parametrize("narrow", WIDTHS)
def test_a_client_shows_the_window_and_what_it_is_made_of(
    browser: Browser, tmp_path: Path, narrow: bool
) -> None:
    page = host_of(browser, tmp_path, narrow=narrow)
    faults: list[str] = []
    page.on("console", lambda message: faults.extend([message.text] if message.type == "error" else []))
    app = page.frame_locator("iframe")
    expect(app.get_by_role("heading", level=1)).to_contain_text("passages fill")
    blocks = app.locator(".map .block")
    expect(blocks).to_have_count(2)
    blocks.nth(1).click()
    expect(app.get_by_role("article", name="The chosen passage")).to_contain_text("[2]")
    inside = page.frames[1]
    assert inside.evaluate("[window.owned, document.documentElement.dataset.theme]") == [None, "dark"]
    assert not inside.evaluate("document.documentElement.scrollWidth > innerWidth")
    inside.evaluate(AXE.read_text(encoding="utf-8"))
    assert [violation["id"] for violation in inside.evaluate("axe.run()")["violations"]] == []
    assert faults == []
    page.close()


def test_only_clients_that_show_apps_get_what_they_show(browser: Browser, tmp_path: Path) -> None:
    assert browser.is_connected()
    _, result = result_of(tmp_path)
    assert VIEW_KEY not in (result.meta or {})
    _, result = result_of(tmp_path, advertise(APPS_EXTENSION))
    view = (result.meta or {})[VIEW_KEY]
    assert sum(part["tokens"] for part in view["parts"]) == view["max_tokens"]
    [passage, *_] = [part for part in view["parts"] if part["kind"] == "passage"]
    [content] = result.content
    assert isinstance(content, TextContent)
    assert "backup" in content.text[passage["start"] : passage["end"]].lower()
