"""Record `make demo` and the playground as one animated picture: `python -m scripts.recording`.

It writes docs/pictures/demo.webp, which plays 40 seconds and then begins again. It needs Chromium, and the
console must be built (`make console`).
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright
from rich.console import Console
from rich.text import Text
from scripts.screenshots import PICTURES, serve_example_store

DEMO: Final = Path(__file__).with_name("demo.py")
COMMAND: Final = "make demo"
PROGRESS: Final = "embedding"
"""Begins the lines of the progress bar, which a terminal overwrites."""
QUESTION: Final = "how do we restore a backup?"
SIZE: Final[ViewportSize] = {"width": 1400, "height": 875}
SCALE: Final = 0.8
COLUMNS: Final = 118
MAX_BYTES: Final = 1_500_000
SECONDS: Final = 40
SCROLL_PIXELS: Final = 500
SETTLE_MILLISECONDS: Final = 3_000
QUALITY: Final = 70
"""Of lossy WebP, 0 to 100."""
TERMINAL: Final = """<body style="margin:0;background:#15181d">
<pre style="margin:20px;font:16px/1.3 monospace;color:#e8ebf0">{lines}</pre></body>"""


class Recording:
    """Pictures of a page, each with the time for which it is seen."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._pictures: list[Image.Image] = []
        self._milliseconds: list[int] = []

    def show(self, seconds: float) -> None:
        """Add what the page shows now, for some seconds."""
        with Image.open(io.BytesIO(self._page.screenshot())) as picture:
            self._pictures.append(picture.convert("RGB"))
        self._milliseconds.append(round(seconds * 1000))

    @property
    def seconds(self) -> float:
        """How long it plays so far."""
        return sum(self._milliseconds) / 1000

    def save(self, path: Path) -> None:
        """Write it as an animated WebP that plays for ever."""
        first, *others = self._pictures
        durations = self._milliseconds
        first.save(
            path, save_all=True, append_images=others, duration=durations, loop=0, quality=QUALITY, method=6
        )


def main() -> None:
    """Record both parts; exit if the file is too large."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("install Debian's package chromium")
    output = run_demo()
    picture = PICTURES / "demo.webp"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serve_example_store(Path(folder) / "store") as (address, key):
            context = browser.new_context(
                viewport=SIZE, device_scale_factor=SCALE, color_scheme="dark", reduced_motion="reduce"
            )
            context.request.post(f"{address}/api/v1/session", data={"key": key}, headers={"Origin": address})
            page = context.new_page()
            recording = Recording(page)
            record_terminal(page, recording, output)
            record_playground(page, recording, address)
        browser.close()
    recording.save(picture)
    print(f"{picture.name}: {recording.seconds:.1f} s, {picture.stat().st_size:,} bytes")
    if picture.stat().st_size > MAX_BYTES:
        sys.exit(f"{picture.name} has more than {MAX_BYTES:,} bytes")


def run_demo() -> list[str]:
    """Return the lines of the demo as HTML. The first run embeds its texts; this one finds them stored."""
    variables = os.environ | {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    demo = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, check=True, env=variables)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(demo.stdout))
    lines = console.export_html(inline_styles=True, code_format="{code}").splitlines()
    return [line for line in lines if PROGRESS not in line]


def record_terminal(page: Page, recording: Recording, output: list[str]) -> None:
    """Type the command, and scroll through its output; it stops where the first window is complete."""
    prompt = '<span style="color:#3f9e6b">$</span> '
    for length in (0, 4, len(COMMAND)):
        page.set_content(TERMINAL.format(lines=prompt + COMMAND[:length]))
        recording.show(0.6)
    questions = [number for number, line in enumerate(output) if "────" in line and "?" in line]
    for number, (begin, end) in enumerate(zip([0, *questions], [*questions, len(output)], strict=True)):
        step = max(1, (end - begin) // 3)
        for last in (*range(begin + step, end - step + 1, step), end):
            page.set_content(TERMINAL.format(lines="\n".join([prompt + COMMAND, *output[:last]])))
            page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            recording.show(0.7)
        recording.show(3.5 if number == 1 else 0.7)


def record_playground(page: Page, recording: Recording, address: str) -> None:
    """Ask a question, look at a passage, and change the budget."""
    page.goto(f"{address}/console/playground?collection=default&max_tokens=1024&reserved_tokens=256")
    page.wait_for_load_state("networkidle")
    recording.show(1)
    question = page.get_by_label("Question").first
    for length in range(9, len(QUESTION) + 1, 9):
        question.fill(QUESTION[:length])
        recording.show(0.4)
    page.keyboard.press("Enter")
    blocks = page.locator(".map .block")
    blocks.nth(1).wait_for()
    page.wait_for_load_state("networkidle")
    recording.show(4)
    blocks.nth(1).click()
    page.wait_for_load_state("networkidle")
    recording.show(3)
    page.mouse.wheel(0, SCROLL_PIXELS)
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    recording.show(3)
    page.mouse.wheel(0, -SCROLL_PIXELS)
    page.keyboard.press("Escape")
    for key in ("[", "]", "]"):
        page.locator("body").press(key)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        recording.show(2)
    recording.show(max(1.0, SECONDS - recording.seconds))


if __name__ == "__main__":
    main()
