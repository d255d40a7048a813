"""Words with their times become captions: sentences that start with their first word."""

from typing import Any

from conspectus.sources.speech.transcripts import SpokenWord, Transcript, Utterance, to_captions


def utter(text: str, start: float, *, speaker: str | None = None, confidence: float = 90) -> Utterance:
    """Words of half a second each."""
    words = [
        SpokenWord(f" {word}", start + number / 2, start + number / 2 + 0.5, confidence)
        for number, word in enumerate(text.split())
    ]
    return Utterance(tuple(words), speaker)


def test_sentences_begin_and_end_with_their_words() -> None:
    transcript = Transcript((utter("The pump is broken. It needs", 0), utter("a new valve.", 3)), 5.0)
    track = to_captions(transcript, "meeting.mp3", by_sentence=True)
    assert [(caption.start, caption.end, caption.text) for caption in track.captions] == [
        (0.0, 2.0, "The pump is broken."),
        (2.0, 4.5, "It needs a new valve."),
    ]
    assert [caption.key for caption in track.captions] == ["meeting.mp3#1", "meeting.mp3#2"]
    assert {caption.read_by for caption in track.captions} == {"speech"}


def test_as_recognized_keeps_what_was_heard_together() -> None:
    transcript = Transcript((utter("The pump is broken. It needs", 0), utter("a new valve.", 3)), 5.0)
    track = to_captions(transcript, "meeting.mp3", by_sentence=False)
    assert [caption.text for caption in track.captions] == ["The pump is broken. It needs", "a new valve."]


def test_speakers_are_told_apart_and_ordered_by_time() -> None:
    transcript = Transcript(
        (
            utter("Good morning.", 0, speaker="channel 1"),
            utter("I am fine.", 4, speaker="channel 1"),
            utter("How are you?", 2, speaker="channel 2"),
        ),
        6.0,
    )
    captions = to_captions(transcript, "call.wav", by_sentence=True).captions
    assert [(caption.speaker, caption.text) for caption in captions] == [
        ("channel 1", "Good morning."),
        ("channel 2", "How are you?"),
        ("channel 1", "I am fine."),
    ]
    assert [caption.index for caption in captions] == [1, 2, 3]


def test_uncertain_words_are_marked_and_counted() -> None:
    confidences = {" Heron": 30.0, " pays": 98.0, " rent.": 97.0}
    words = tuple(SpokenWord(word, 0, 1, confidence) for word, confidence in confidences.items())
    track = to_captions(Transcript((Utterance(words),), 3.0), "a.mp3", by_sentence=True)
    speech: Any = track.captions[0].metadata["speech"]
    assert speech == {"confidence": 75.0, "words": 3, "uncertain": [[0, 5]]}
    assert track.notice == "1 of 3 words of the speech are uncertain"


def test_a_recording_without_words_has_no_captions() -> None:
    track = to_captions(Transcript((), 9.0, None, "Silence"), "a.mp3", by_sentence=True)
    assert (track.captions, track.title, track.notice) == ((), "Silence", "no speech was heard in it")


def test_a_script_without_spaces_is_one_text() -> None:
    text = "今日は雨。明日も雨。"
    words = tuple(SpokenWord(word, second, second + 1, 90) for second, word in enumerate(text))
    captions = to_captions(Transcript((Utterance(words),), 10.0), "a.mp3", by_sentence=True).captions
    assert [caption.text for caption in captions] == ["今日は雨。", "明日も雨。"]
