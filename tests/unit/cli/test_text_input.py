"""The texts of files, which messages never quote."""

from pathlib import Path

import pytest

from conspectus.cli.text_input import read_text
from conspectus.errors import InvalidInput


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffGrüße\r\n".encode())
    assert read_text(file) == "Grüße\r\n"


def test_a_file_that_is_no_text_or_missing_is_named_by_its_field(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"secret \xff")
    with pytest.raises(InvalidInput, match=r"^headers: is not UTF-8: invalid start byte at byte 7$"):
        read_text(file, "headers")
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_text(tmp_path / "nowhere")
