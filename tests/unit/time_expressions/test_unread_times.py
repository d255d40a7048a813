"""What looks like a time and is not read."""

import pytest

from conspectus.time_expressions import unread_times


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("the crash on 03/10/2025", ["03/10/2025"]),
        ("what fell last fortnight?", ["last fortnight"]),
        ("who sang next Monday", ["next Monday"]),
        ("Yesterday", ["Yesterday"]),
        ("ten blue moons ago", ["blue moons ago"]),
        ("last month and 1/2/24", ["1/2/24", "last month"]),
        ("on 31 February 2026", ["31 February"]),
        ("the red car", []),
        ("one of 3/4 cups", []),
        ("the crash 10.03.2025.", ["10.03.2025"]),
        ("the crash 2025-03-10", ["2025-03-10"]),
        ("version 1.2.2025.4", []),
        ("job 2025-03-10-7", []),
        ("at 10.0.0.1 and 1.2.3", []),
        ("the last call", []),
        ("", []),
    ],
)
def test_phrases_that_look_like_times(text: str, phrases: list[str]) -> None:
    assert unread_times(text) == phrases


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("was fiel letzten Sommer um?", ["letzten Sommer"]),
        ("was geschah vor zwei Jahrzehnten", ["vor zwei Jahrzehnten"]),
        ("was war am 31. Februar", ["31. Februar"]),
        ("Gestern", ["Gestern"]),
        ("wer kam vorigen Donnerstag", ["vorigen Donnerstag"]),
        ("que s'est passé l'été dernier", ["l'été dernier"]),
        ("qui est venu mardi dernier", ["mardi dernier"]),
        ("où était-il il y a trois siècles", ["il y a trois siècles"]),
        ("le 31 février", ["31 février"]),
        ("qué pasó el verano pasado", ["verano pasado"]),
        ("dónde fue hace dos décadas", ["hace dos décadas"]),
        ("el 31 de febrero", ["31 de febrero"]),
        ("wer steht vor dem Haus", []),
        ("il y a deux problèmes", []),
        ("hace dos cosas", []),
        ("what does hier mean", []),
        ("the Mars rover", []),
        ("find 3 mars bars", []),
        ("crane letzten Sommer", ["letzten Sommer"]),
        ("crane hace dos siglos", ["hace dos siglos"]),
        ("der Tag", []),
        ("what did ann say gestern?", ["gestern"]),
        ("the invoice of Oktober", ["Oktober"]),
        ("what did ann say avant-hier?", ["avant-hier"]),
        ("what did ann say ayer", ["ayer"]),
        ("who played Montag", []),
        ("songs of Avril Lavigne on Mardi Gras", []),
        ("Julio and the mayo", []),
    ],
)
def test_phrases_that_look_like_times_in_other_languages(text: str, phrases: list[str]) -> None:
    assert unread_times(text) == phrases
