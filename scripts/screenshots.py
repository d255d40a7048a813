"""Take the pictures of the console in docs/pictures, on the example store. It needs Chromium."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

from playwright.sync_api import Browser, FloatRect, ViewportSize, sync_playwright

Theme: TypeAlias = Literal["light", "dark"]
PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()"]
QUESTION = "how+do+we+restore+a+backup%3F"
PLAYGROUND = f"/playground?collection=default&max_tokens=1024&reserved_tokens=256&query={QUESTION}"
QUESTION_AND_BAR: Final = FloatRect(x=236, y=14, width=1020, height=312)
"""The part of the playground that has the question, the budget and the window to scale."""
PICTURE_PAGES: Final[tuple[tuple[str, str, Theme, FloatRect | None], ...]] = (
    ("see-as", f"/see-as?collection=default&user=bob&query={QUESTION}", "light", None),
    ("playground-light", PLAYGROUND, "light", None),
    ("window-light", PLAYGROUND, "light", QUESTION_AND_BAR),
    ("window-dark", PLAYGROUND, "dark", QUESTION_AND_BAR),
    ("memory", "/memory?at=2026-07-16T00:00:00Z&query=when+do+releases+go+out%3F", "light", None),
)
WINDOW_PIXELS: Final = ViewportSize(width=1280, height=900)


def main() -> None:
    """Make the example store, serve it, and take each picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("install Debian's package chromium")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serve_example_store(Path(folder) / "store") as (address, key):
            for name, path, theme, clip in PICTURE_PAGES:
                picture = PICTURES / f"{name}.png"
                take_picture(browser, f"{address}/console{path}", key, picture, theme, clip)
        browser.close()


@contextmanager
def serve_example_store(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the example store; yield its address and the key of its owner."""
    demo = subprocess.run([*PROGRAM, "demo", folder, "--json"], capture_output=True, text=True, check=True)
    command = [*PROGRAM, "serve", "--data-dir", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        lines = ""
        while not lines.rstrip().endswith("}"):
            lines += server.stdout.readline()
        try:
            yield json.loads(lines)["address"], json.loads(demo.stdout)["keys"]["owner"]
        finally:
            server.terminate()


def take_picture(
    browser: Browser, address: str, key: str, picture: Path, theme: Theme, clip: FloatRect | None
) -> None:
    """Take a picture of the page at this address, or of a part of it, as the owner sees it."""
    origin = address.split("/console")[0]
    context = browser.new_context(
        viewport=WINDOW_PIXELS, color_scheme=theme, device_scale_factor=1, reduced_motion="reduce"
    )
    context.request.post(f"{origin}/api/v1/session", data={"key": key}, headers={"Origin": origin})
    page = context.new_page()
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=picture, clip=clip)
    context.close()


if __name__ == "__main__":
    main()
