"""Each member of a store of Chroma, Qdrant or mem0 is imported, or skipped with a reason."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.repetitions import tries
from tests.support.foreign_environment import stores_python

ROOT = Path(__file__).resolve().parents[2]
Count = Callable[[str, list[Any]], tuple[int, int]]
"""Makes a store of a kind with members, and returns how many are imported and how many skipped."""
TEXTS = st.sampled_from(["hello", "", " ", "\u00a0", "two\nlines", "\u00ad'\u00ad"])
SCOPES: st.SearchStrategy[Any] = st.sampled_from([None, "ann", 42, "", 1.5, [], {"a": 1}, True])
ODD: st.SearchStrategy[Any] = st.sampled_from([None, 5, "x", "", [], [{}], {}, {"content": "inner"}, True])
"""Values of any form where a text may be."""
VECTORS = st.lists(st.sampled_from(["dense", "other", "words"]), unique=True)
PAYLOADS = st.none() | st.dictionaries(
    st.sampled_from(["text", "page_content", "metadata", "data", "page"]), ODD, max_size=3
)
FEW = settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def count() -> Iterator[Count]:
    program = subprocess.Popen(
        [stores_python(), "-m", "tests.foreign_members"],
        cwd=ROOT,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None and program.stdout is not None
    stdin, stdout = program.stdin, program.stdout

    def count_records(kind: str, members: list[Any]) -> tuple[int, int]:
        print(json.dumps([kind, members]), file=stdin, flush=True)
        imported, skipped = json.loads(stdout.readline())
        return imported, skipped

    yield count_records
    program.communicate()


@FEW
@given(
    members=st.lists(
        st.fixed_dictionaries(
            {
                "text": st.none() | TEXTS,
                "metadata": st.dictionaries(
                    st.sampled_from(["page", "team"]), st.sampled_from([1, 1.5, "x", "", True])
                ),
            }
        ),
        max_size=5,
    )
)
def test_every_record_of_chroma_is_accounted_for(count: Count, members: list[Any]) -> None:
    assert sum(count("chroma", members)) == len(members)


@FEW
@given(members=st.lists(st.fixed_dictionaries({"payload": PAYLOADS, "vectors": VECTORS}), max_size=5))
def test_every_point_of_qdrant_is_accounted_for(count: Count, members: list[Any]) -> None:
    assert sum(count("qdrant", members)) == len(members)


@FEW
@given(
    members=st.lists(
        st.fixed_dictionaries(
            {
                "payload": PAYLOADS
                | st.fixed_dictionaries({"data": TEXTS, "user_id": SCOPES, "created_at": SCOPES}),
                "vectors": VECTORS,
            }
        ),
        max_size=5,
    )
)
def test_every_memory_of_mem0_in_qdrant_is_accounted_for(count: Count, members: list[Any]) -> None:
    assert sum(count("mem0", members)) == len(members)
