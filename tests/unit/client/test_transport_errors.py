"""A server's problem documents are the errors that its engine raised."""

import pytest

from conspectus import errors
from conspectus.client.transport import error_of
from conspectus.errors import ConspectusError, IndexDamaged, StorageError
from conspectus.web.problem_details import UNKNOWN, problem_of

ERRORS = [
    errors.InvalidInput("where", "is odd"),
    errors.TooLarge("text", size=3, limit=2, unit="characters"),
    errors.DanglingEdges(["ann", "bo"]),
    errors.UnknownTokenizer("abacus"),
    errors.NotFound("collection", "wiki"),
    errors.Unauthenticated(),
    errors.InvalidToken(),
    errors.PermissionDenied("write", "the role editor"),
    errors.Conflict("collection", "wiki", "exists already"),
    errors.PreconditionFailed("document", "a"),
    errors.ForkedEngine(),
    errors.UnindexableText("IndexError"),
    errors.UnreadableFile("a.pdf", "is locked"),
    errors.UnsupportedContent("a.png", "is a picture"),
    errors.FetchFailed("http://host/", "HTTP 503", status=503, passing=True),
    errors.ForbiddenAddress("http://10.0.0.1/"),
    errors.Overloaded("all places are taken", retry_after=2.5),
    errors.RateLimited(60, retry_after=7.5),
    errors.TooManyBodyBytes(200_000_000),
    errors.ServerUnavailable("http://host", "is away"),
    errors.MissingExtra("openai", "the library openai"),
    errors.ProviderError("openai", "refused", status=400),
    errors.ProviderUnavailable("openai", "is busy", status=429, retry_after=7.0),
    errors.StorageBusy("the store is busy; ask again"),
    errors.WriteOutcomeUnknown(UNKNOWN),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_itself(error: ConspectusError) -> None:
    again = error_of(problem_of(error).document())
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_every_error_is_tried_but_those_of_which_a_server_says_nothing() -> None:
    hidden = {
        "AccessLost",
        "RequestBudgetSpent",
        "StorageError",
        "StorageTooNew",
        "StorageTooOld",
        "ExtensionMissing",
        "RecordsDamaged",
        "IndexDamaged",
        "IndexReplaced",
        "LockLost",
        "StoreClosed",
        "LoginFailed",
    }
    hidden |= {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ChatError)
    }
    named = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, ConspectusError)
    }
    assert named - hidden - {"ConspectusError"} == {type(error).__name__ for error in ERRORS}


def test_what_a_server_hides_is_still_a_fault_of_its_store() -> None:
    hidden = error_of(problem_of(IndexDamaged("/secret/place", "is torn")).document())
    assert type(hidden) is StorageError
    assert "/secret" not in str(hidden)


@pytest.mark.parametrize(
    "problem",
    [
        {"code": "invented", "detail": "odd"},
        {"code": "not_found", "detail": "odd"},
        {"code": ["not_found"], "detail": "odd"},
        {"title": "odd"},
    ],
)
def test_what_is_not_known_is_an_error_all_the_same(problem: dict[str, object]) -> None:
    error = error_of(problem)
    assert (type(error), str(error)) == (ConspectusError, "odd")


@pytest.mark.parametrize("kind", [errors.ChatError, *errors.ChatError.__subclasses__()])
def test_an_error_of_the_chat_model_keeps_its_kind_and_no_internals(kind: type[errors.ChatError]) -> None:
    is_unmapped = kind is errors.ChatNotConfigured
    error = errors.ChatNotConfigured() if is_unmapped else kind("vendor", "key sk-1")
    again = error_of(problem_of(error).document())
    assert type(again) is kind
    assert isinstance(again, errors.ChatError)
    assert (str(again), again.reason) == (kind.user_message, kind.user_message)
    assert "sk-1" not in repr(vars(again))


def test_a_problem_without_any_reason_says_so() -> None:
    assert str(error_of({})) == "the server gave no reason"
