"""What a caller asks: a question, under a filter, for a number of hits or a number of tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.validation import Validated

Arm = Literal["words", "vectors"]
ARMS: tuple[Arm, ...] = get_args(Arm)

EVERYWHERE = "*"
"""The name that stands for every collection of which the person may see anything."""


@dataclass(frozen=True, slots=True)
class QueryContext(Checked):
    """Where and when a question is asked, for what conversations add to scores.

    `channel` is the id or name of a source and `thread` the name of a thread in it; `at` is an instant with a
    zone (None: now). `profile` names how the parts of a score are weighed (`default` or `multiplicative`).
    """

    channel: str | None = None
    thread: str | None = None
    at: datetime | None = None
    profile: str = "default"


@dataclass(frozen=True, slots=True)
class Query(Validated):
    """A question to one collection, or to all with `*`.

    `vector` is the question's own vector where the caller has it already; `floor` the least raw cosine
    similarity of a hit (0 to 1, None: no floor); `limit` the most hits; `arms` the ways to look;
    `rerank` lets the reranker of the settings, if there is one, have the last word. `situation` brings in
    the parts of a score that depend on where and when a question is asked; `chain` is the most messages of
    its thread that come along with a hit. `as_of` asks for what was known at that instant (None: now):
    without what was recorded since, and with the versions that were replaced since. `graph` gives the names
    in passages, and the graphs that connect them, a say (None: none).
    """

    text: str
    collection: str = "default"
    where: Filter = EVERYTHING
    limit: int = 10
    floor: float | None = None
    arms: tuple[Arm, ...] = ("words", "vectors")
    vector: tuple[float, ...] | None = None
    rerank: bool = True
    situation: QueryContext | None = None
    chain: int = 0
    as_of: datetime | None = None
    graph: GraphExpansion | None = None


@dataclass(frozen=True, slots=True)
class Budget(Checked):
    """How many tokens there are, who counts them, and what else they have to pay for.

    `system` and `question` are texts that will stand beside the window in the same prompt; `answer` is
    the number of tokens kept free for the model's reply. 0 tokens means none.
    """

    tokens: int
    tokenizer: str = "o200k_base"
    system: str = ""
    question: str = ""
    answer: int = 0
