"""Storage of question sets and their runs besides Records."""

from collections.abc import Sequence
from typing import Protocol

from conspectus.model.experiments import (
    Question,
    QuestionSet,
    QuestionSetPage,
    QuestionShares,
    Run,
    RunFigure,
    RunPage,
    RunWindow,
    StoredRun,
)
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Collection, RetrievalDefaults


class ExperimentStore(Protocol):
    """Question sets of collections, and runs of them.

    A question ends with each document of its evidence, and a purge deletes one whose documents have changed.
    `sources` are those that the person may read (None: all): other questions are left out, and documents of
    other sources are left out of windows. The collection of a set is named by its id.
    """

    async def add_set(
        self, question_set: QuestionSet, questions: Sequence[Question], collection: CollectionId
    ) -> None:
        """Store a set. Raises Conflict if the collection has one of that name, or NotFound."""

    async def add_questions(self, question_set: str, questions: Sequence[Question]) -> None:
        """Store questions in place of those with the same key. Raises NotFound, or Conflict if too many."""

    async def sets(self, collection: CollectionId, *, after: str | None, limit: int) -> QuestionSetPage:
        """A page of the sets of a collection, newest first. Raises InvalidInput for a broken cursor."""

    async def get_set(self, question_set: str) -> QuestionSet | None:
        """The set of that id."""

    async def questions(self, question_set: str, sources: Sequence[SourceId] | None) -> Sequence[Question]:
        """The questions of a set by key."""

    async def delete_set(self, question_set: str) -> bool:
        """Delete a set with its runs; whether it existed."""

    async def add_run(self, run: Run) -> None:
        """Store a run. Raises NotFound if its set was deleted."""

    async def list_runs(
        self, collection: CollectionId, question_set: str | None, *, after: str | None, limit: int
    ) -> RunPage:
        """A page of the runs of a collection or a set, newest first. Raises InvalidInput."""

    async def get_run(self, run: str) -> StoredRun | None:
        """The run of that id."""

    async def get_run_of_job(self, job: str) -> StoredRun | None:
        """The run whose questions a job asks."""

    async def add_windows(self, run: str, question: str, windows: Sequence[RunWindow]) -> bool:
        """Store the windows of a question; whether both still exist."""

    async def shares(self, run: str, sources: Sequence[SourceId] | None) -> Sequence[QuestionShares]:
        """The questions of a run that were asked, by key, with the share in each window."""

    async def windows(
        self, run: str, question: str, sources: Sequence[SourceId] | None
    ) -> tuple[Question, Sequence[RunWindow]] | None:
        """A question of a run with its windows, none before it is asked; None if it may not be read."""

    async def finish_run(self, run: str, figures: Sequence[RunFigure]) -> None:
        """Store the figures of a run, if it exists."""

    async def delete_run(self, run: str) -> bool:
        """Delete a run; whether it existed."""

    async def set_defaults(self, collection: CollectionId, defaults: RetrievalDefaults) -> Collection:
        """Make options the defaults of a collection, with the next version. Raises NotFound."""

    async def undo_defaults(self, collection: CollectionId, version: int) -> Collection:
        """Restore the defaults before a version. Raises NotFound, or Conflict if it is not current."""
