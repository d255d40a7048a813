import pytest

from conspectus.text.name_keys import MAX_KEY_LENGTH, key_of, keys_of, relation_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("", ""),
        ("   ", ""),
        ("The Beatles", "beatles"),
        ("the the Who", "who"),
        ("A", "a"),
        ("The", "the"),
        ("London's", "london"),
        ("McDonald\u2019s", "mcdonald"),
        ("men 's", "men"),
        ("Café  Müller", "cafe muller"),
        ("Cafe\u0301", "cafe"),
        ("\uff21\uff23\uff2d\uff25", "acme"),
        ("İstanbul", "istanbul"),
        ("straße", "strasse"),
        ("\u200bNew\u00a0York\n", "new york"),
        ("“Quoted”", "quoted"),
        ("C++", "c++"),
        ("C#", "c#"),
        (".NET", ".net"),
        ("O'Brien", "o'brien"),
        ("Jean\u2010Luc", "jean-luc"),
        ("Москва́", "москва́"),
        ("東京", "東京"),
        ("!?", "!?"),
    ],
)
def test_a_key_drops_what_does_not_tell_names_apart(name, key):
    assert key_of(name) == key


@pytest.mark.parametrize("name", ["the " * 100_000, "'s" * 500_000, "a' " * 300_000, "\u0301" * 1_000_000])
def test_a_hostile_name_has_a_short_key(name):
    assert len(key_of(name)) <= MAX_KEY_LENGTH


def test_the_keys_of_a_node_are_of_its_name_and_aliases_each_once():
    assert keys_of("The Beatles", ["beatles", "Fab Four", "", "FAB FOUR"]) == ("beatles", "fab four")


def test_other_names_keep_other_keys():
    names = ["Ann", "Anna", "Ann Smith", "Joanna", "C", "C++", "C#", "art", "start", ".net", "net"]
    assert len({key_of(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    "name",
    ["works at", "Works At", "works_at", "WORKS_AT", "works-at", "works  at", "works\u2013at", "_works at_"],
)
def test_spellings_of_a_relation_share_a_key(name: str) -> None:
    assert relation_key(name) == "works at"


def test_a_long_relation_has_a_short_key_that_its_spellings_share() -> None:
    name = "\u4e00" * 86
    assert relation_key(f"{name}_at") == relation_key(f"{name}-AT") != relation_key(f"{name} of")
    assert len(relation_key(name)) == 64 and relation_key(name[1:]) == name[1:]


@pytest.mark.parametrize("name", ["-", "->", "__", "≥", "", "worksat"])
def test_other_relations_have_keys_of_their_own(name: str) -> None:
    assert relation_key(name) != "works at"
    assert bool(relation_key(name)) is bool(name)
