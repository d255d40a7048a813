"""Options are keywords that have the names and types of fields of a dataclass."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.errors import InvalidInput
from conspectus.model.channels import ChannelQuery, ChannelQueryOptions
from conspectus.model.checks import hints
from conspectus.model.memory import MemoryQuery, MemoryQueryOptions, Scope
from conspectus.model.query import Query, QueryOptions, WindowForm, WindowFormOptions
from conspectus.model.records import DocumentChanges, NewDocument
from conspectus.model.stream_summaries import SummaryRequest, SummaryRequestOptions
from conspectus.model.streams import StreamQuery, StreamQueryOptions


@pytest.mark.parametrize(
    ("options", "dataclass_type", "besides"),
    [
        (QueryOptions, Query, {"query"}),
        (WindowFormOptions, WindowForm, set()),
        (MemoryQueryOptions, MemoryQuery, {"query", "scope"}),
        (ChannelQueryOptions, ChannelQuery, {"query", "channel"}),
        (StreamQueryOptions, StreamQuery, {"query"}),
        (SummaryRequestOptions, SummaryRequest, {"stream"}),
        (DocumentChanges, NewDocument, {"key", "if_match"}),
    ],
)
def test_options_are_the_fields_of_their_dataclass(
    options: Any, dataclass_type: Any, besides: set[str]
) -> None:
    field_types = hints(dataclass_type)
    types_by_name = {field.name: field_types[field.name] for field in fields(dataclass_type)}
    assert hints(options) == {name: kind for name, kind in types_by_name.items() if name not in besides}


def test_a_keyword_that_is_no_option_is_refused(tmp_path: Path) -> None:
    with conspectus.open(tmp_path) as engine:
        [written] = engine.add("Ann bakes bread.")
        for call, arguments in (
            (engine.retrieve, ("bread",)),
            (engine.search.window, ("bread", 50)),
            (engine.search.explain, ("bread", 50)),
            (engine.search.augment, ("bread", 50)),
            (engine.search.search_and_rerank, ("bread",)),
            (partial(engine.memory.recall, scope=Scope("ann")), ("bread",)),
            (partial(engine.channels.window, channel="here"), ("bread",)),
            (engine.streams.search, ("bread",)),
            (engine.summaries.summarize, ("film",)),
            (engine.documents.update, (written.id,)),
        ):
            with pytest.raises(InvalidInput, match="is not an argument; give ") as caught:
                call(*arguments, colour="red")  # type: ignore[operator]
            assert caught.value.field == "colour"
            assert "*" not in str(caught.value)
