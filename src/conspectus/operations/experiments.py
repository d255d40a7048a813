"""The operations on question sets and their runs, each declared once."""

from typing import Final

from conspectus.engine.experiments import ExperimentService
from conspectus.model.experiments import RunQuery
from conspectus.operations.operation import OMITTED, Operation

_SETS: Final = "/question-sets"
_SET: Final = "/question-sets/{question_set}"
_RUN: Final = "/runs/{run}"

EXPERIMENT_OPERATIONS: Final = (
    Operation(
        ExperimentService.create_set,
        "POST",
        _SETS,
        status=201,
        id="create_question_set",
        for_models="never",
    ),
    Operation(ExperimentService.list_sets, "GET", _SETS, id="list_question_sets", for_models="never"),
    Operation(ExperimentService.get_set, "GET", _SET, id="get_question_set", for_models="never"),
    Operation(
        ExperimentService.delete_set, "DELETE", _SET, status=204, id="delete_question_set", for_models="never"
    ),
    Operation(ExperimentService.add_questions, "POST", f"{_SET}/questions", for_models="never"),
    Operation(
        ExperimentService.start_run,
        "POST",
        f"{_SET}/runs",
        status=201,
        fields_of=RunQuery,
        defaults={"limit": OMITTED},
        for_models="never",
    ),
    Operation(ExperimentService.list_runs, "GET", "/runs", for_models="never"),
    Operation(ExperimentService.get_run, "GET", _RUN, for_models="never"),
    Operation(
        ExperimentService.get_run_question, "GET", f"{_RUN}/questions/{{question}}", for_models="never"
    ),
    Operation(ExperimentService.delete_run, "DELETE", _RUN, status=204, for_models="never"),
    Operation(ExperimentService.use_run, "POST", f"{_RUN}/use", audited=True, for_models="never"),
)
"""A set and its runs have texts of people, and defaults decide what everybody finds: none is for models."""
