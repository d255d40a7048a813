"""The operations on answer records, each declared once."""

from typing import Final

from conspectus.engine.answers import AnswerService
from conspectus.operations.operation import Operation

ANSWER_OPERATIONS: Final = (
    Operation(AnswerService.list, "GET", "/answers", id="list_answers", for_models="never"),
    Operation(AnswerService.get, "GET", "/answers/{answer}", id="get_answer", for_models="never"),
    Operation(
        AnswerService.delete,
        "DELETE",
        "/answers/{answer}",
        id="delete_answer",
        status=204,
        for_models="never",
    ),
)
