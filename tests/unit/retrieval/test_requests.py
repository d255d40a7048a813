"""What a request is about, in several languages."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.requests import MAX_REQUEST_CHARACTERS, request_subject


@pytest.mark.parametrize(
    ("request_text", "subject"),
    [
        ("Could you please tell me about the harbour?", "the harbour"),
        ("Walk me through how we moved to Lisbon.", "how we moved to Lisbon"),
        ("I\u2019d like to know more about the lighthouse", "the lighthouse"),
        ("Give me a short summary of our garden plans so far.", "our garden plans"),
        ("List the order in which I brought up my trips, one by one", "my trips"),
        ("Show me all topics. Answer in two sentences.", "all topics"),
        ("Can you give me an overview of different aspects of my diet across our chats?", "my diet"),
        ("Kannst du mir sagen, wann der Zug fährt?", "wann der Zug fährt"),
        ("Nenne mir die Reihenfolge, in der ich meine Reisen erwähnt habe. Nur drei Punkte.", "meine Reisen"),
        ("Fass mir kurz zusammen, wie der Umzug lief", "wie der Umzug lief"),
        ("Peux-tu me donner un résumé de mes voyages au fil du temps ?", "mes voyages"),
        ("Dis-moi comment va le chat, s'il te plaît", "comment va le chat"),
        ("¿Puedes darme un resumen de mis viajes hasta ahora?", "mis viajes"),
        ("Cuéntame cómo está el gato, por favor", "cómo está el gato"),
    ],
)
def test_the_subject_of_a_request(request_text: str, subject: str) -> None:
    assert request_subject(request_text) == subject


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "?!",
        "list files in directory",
        "order of operations",
        "summary statistics pandas",
        "What is the order in which the lights are lit?",
        "Who can tell me the time?",
        "in our conversations",
        "mir ist kalt",
        "faire des crêpes",
        "orden alfabético",
        "今日の予定を教えて",
    ],
)
def test_keywords_and_questions_are_no_requests(text: str) -> None:
    assert request_subject(text) == text


@pytest.mark.parametrize("text", ["please", "Tell me about it", "Could you tell me?"])
def test_a_request_that_names_no_subject_stays_whole(text: str) -> None:
    assert request_subject(text) == text


def test_a_long_text_is_searched_for_as_it_is() -> None:
    text = f"Tell me about {'the harbour ' * 200}"
    assert len(text) > MAX_REQUEST_CHARACTERS
    assert request_subject(text) == text


@given(
    st.sampled_from(["Can you tell me about ", "Please list ", "Bitte nenne mir ", "Dis-moi ", "Dime "]),
    st.text(max_size=200),
)
def test_a_subject_is_a_part_of_the_request(opening: str, rest: str) -> None:
    text = (opening + rest).replace("\u2019", "'")
    assert request_subject(text) in text


@pytest.mark.parametrize(
    "part", ["please ", ". be only ", " ", "can you ", "in our ", "the main ", "a-", "¿"]
)
def test_no_text_takes_long(part: str) -> None:
    text = f"please tell me {part * MAX_REQUEST_CHARACTERS}"[:MAX_REQUEST_CHARACTERS]
    request_subject(text)
    start = process_time()
    request_subject(text)
    assert process_time() - start < 0.2
