"""Files of any format that hold no captions."""

import pytest

from conspectus.errors import UnreadableFile
from conspectus.sources.subtitles.caption_import import read_caption_file


@pytest.mark.parametrize("name", ["a.ass", "a.sbv", "a.smi", "a.scc", "a.bin", "noend"])
def test_what_holds_no_captions_is_an_error(name: str) -> None:
    with pytest.raises(UnreadableFile, match=r"no caption was found|unknown format of captions"):
        read_caption_file("nothing of the kind\n", name)
