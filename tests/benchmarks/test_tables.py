"""A row of a table is found with its header in a small window, in every format that has tables."""

import asyncio

from benchmarks.tables import ASKED, WRITERS, count_answers, write_files

from conspectus import Settings


def test_a_window_of_200_tokens_has_the_row_with_its_header(tmp_path):
    answers = asyncio.run(count_answers(write_files(tmp_path), settings=Settings(embedder="none")))
    assert answers == dict.fromkeys(WRITERS, len(ASKED))
