"""Progress of long work where no terminal is."""

from typing import Any

from conspectus.cli.output import progress


def test_progress_in_a_pipe_is_a_line_each_time_the_seconds_are_over(capsys: Any) -> None:
    with progress(seconds=0) as report:
        report("embedding", 1_200, 4_050)
        report("reading", 7, 0)
    assert capsys.readouterr().err == "embedding: 1,200 of 4,050\nreading: 7\n"


def test_short_work_has_no_line(capsys: Any) -> None:
    with progress() as report:
        report("embedding", 1_200, 4_050)
    assert capsys.readouterr().err == ""
