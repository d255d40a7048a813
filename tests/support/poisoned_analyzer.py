"""An analyzer that fails for one word, as analyzers of earlier versions did for some texts."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from conspectus.index.text_faults import FaultFinder
from conspectus.ports import TextAnalysis
from conspectus.text.analyzer import analyzer_for

POISON = "nightshade"
CHILD = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    "from conspectus.index.text_faults import answer_faults; "
    "from tests.support.poisoned_analyzer import poisoned; answer_faults(poisoned)"
)


def poisoned(language: str | None) -> Callable[[str], Sequence[str]]:
    """Return the analyzer of a language, which fails for texts with the word."""

    def terms(text: str) -> Sequence[str]:
        if POISON in text:
            raise LookupError(text)
        return analyzer_for(language).terms(text)

    return terms


POISONED = TextAnalysis(poisoned, FaultFinder([sys.executable, "-c", CHILD]))
