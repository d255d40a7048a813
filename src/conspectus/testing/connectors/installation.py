"""Installs connectors of the modules under test, as pip would, without a package."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from conspectus.private import make_folder, open_for_writing

METADATA: Final = "Metadata-Version: 2.1\nName: connectors-of-tests\nVersion: 1.0\n"


def install_connector(folder: Path, monkeypatch: pytest.MonkeyPatch, factories: Mapping[str, str]) -> None:
    """Let this process find connectors, by the names of their kinds: `{"notes": "notes_connector:Notes"}`.

    `folder` is an empty one that lasts as long as the test.
    """
    metadata = folder / "connectors_of_tests-1.0.dist-info"
    make_folder(metadata)
    lines = [f"{kind} = {factory}" for kind, factory in factories.items()]
    texts = {"METADATA": METADATA, "entry_points.txt": "\n".join(["[conspectus.connectors]", *lines, ""])}
    for name, text in texts.items():
        with open_for_writing(metadata / name) as file:
            file.write(text.encode())
    monkeypatch.syspath_prepend(str(folder))
