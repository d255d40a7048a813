import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conspectus.errors import InvalidInput
from conspectus.text.analyzer import MAX_TERM_LENGTH, Analyzer

english = Analyzer()
unstemmed = Analyzer(None)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (" \t\n", []),
        ("...!?", []),
        ("Houses, (running) “quoted”…", ["hous", "run", "quot"]),
        ("HTTP_404", ["http_404", "http", "404"]),
        ("parseURL", ["parseurl", "pars", "url"]),
        ("getHTTPResponse", ["gethttprespons", "get", "http", "respons"]),
        ("v2.3.1", ["v2.3.1", "2.3.1", "2.3"]),
        ("python3.11", ["python3.11", "python", "3.11"]),
        ("192.168.1.1", ["192.168.1.1", "192.168", "192.168.1"]),
        ("foo.bar_baz", ["foo.bar_baz", "foo", "bar_baz", "bar", "baz"]),
        ("__init__", ["__init__", "init"]),
        ("_emphasis_", ["emphasi"]),
        ("C++, C# (.NET)", ["c++", "c#", ".net", "net"]),
        ("user@example.com", ["user@example.com", "user", "example.com", "exampl", "com"]),
        ("http://a1.org/path?k=7.", ["a1.org/path?k=7", "http", "a1.org", "a1", "org", "path", "k", "7"]),
        ("1,000.50 and 2,5", ["1000.50", "2", "5"]),
        ("covid-19", ["covid-19", "covid", "19"]),
        ("well-known", ["well", "known"]),
        ("U.S.A. IDs", ["usa", "id"]),
        ("dog's O'Brien l\u2019homme", ["dog", "obrien", "o", "brien", "lhomm", "l", "homm"]),
        ("👍🏽 🇩🇪 ok👍", ["👍", "🇩🇪", "ok", "👍"]),
        ("黒猫が好き", ["黒猫", "猫が", "が好", "好き"]),
        ("猫", ["猫"]),
        ("학교에서", ["학교", "교에", "에서"]),
        ("한국 K팝", ["한국", "k", "팝"]),
        ("ไทย", ["ไท", "ทย"]),
        ("हिन्दी", ["हिन्द"]),
        ("co\u00adoperate ﬁne", ["cooper", "fine"]),
        ("word\x00word", ["word", "word"]),
    ],
)  # fmt: skip
def test_terms(text, terms):
    assert english.terms(text) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "CAFE"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("\u0131s\u0131", "ISI"),
        ("łódź Ørsted", "lodz orsted"),
        ("ёлка", "Елка"),
        ("Ελλάδα", "ελλαδα"),
        ("\uff21\uff22\uff23\uff11\uff12", "abc12"),
        ("don\u2019t", "don't"),
    ],
)
def test_case_accents_and_forms_are_folded(one, other):
    assert Analyzer(None, stop_words=False).terms(one) == Analyzer(None, stop_words=False).terms(other) != []


def test_marks_that_are_letters_stay():
    assert unstemmed.terms("йод їжа が कि") == ["йод", "їжа", "が", "कि"]


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("404", "HTTP_404"),
        ("url", "parseURL"),
        ("2.3.1", "v2.3.1"),
        ("parseurl", "parseURL"),
        ("httpResponse", "http"),
    ],
)
def test_a_question_finds_whole_and_parts(question, document):
    assert set(english.terms(question)) & set(english.terms(document))


def test_an_ordinary_word_gives_exactly_one_term():
    for word in ("house", "House", "HOUSE", "houses.", "(house)", "naïve", "дома", "1990"):
        assert len(english.terms(word)) == 1


def test_function_words_are_left_out_but_not_acronyms():
    assert english.terms("How does the WHO advise on IT?") == ["who", "advis", "it"]
    assert Analyzer(stop_words=False).terms("the cat") == ["the", "cat"]
    assert Analyzer("german").terms("the Katze") == ["the", "katz"]


def test_a_text_of_function_words_alone_keeps_them():
    assert english.terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_stemming_is_by_language():
    assert Analyzer("german").terms("Häuser Haus") == ["haus", "haus"]
    assert unstemmed.terms("running houses") == ["running", "houses"]
    with pytest.raises(InvalidInput, match="klingon"):
        Analyzer("klingon")


def test_long_tokens_are_bounded_and_stay_distinct():
    terms = english.terms("x" * 100 + " " + "x" * 101 + " " + "ab.cd_" * 50_000)
    assert max(map(len, terms)) == MAX_TERM_LENGTH
    assert len(set(terms[:2])) == 2
    assert terms.count("ab") + terms.count("cd") > 90_000


HOSTILE = ("a_", "aB", "1.", "1,000", "'", "a'", "http://", "\u0301", "🇩", "\u200d👩", "a-", "@a", "::", "猫")


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_run_gives_bounded_terms_and_no_more_than_it_has_characters(piece):
    text = piece * 20_000
    terms = english.terms(text)
    assert len(terms) <= 2 * len(text)
    assert max(map(len, terms), default=0) <= MAX_TERM_LENGTH


def test_many_distinct_words_do_not_grow_memory_without_bound():
    analyser = Analyzer()
    for start in range(0, 140_000, 1000):
        analyser.terms(" ".join(f"word{number}" for number in range(start, start + 1000)))
    assert len(analyser._terms_by_word) <= 131_072
    assert sys.getsizeof(analyser._terms_by_word) < 20_000_000


def test_threads_share_one_analyser():
    text = " ".join(f"running{number} houses nationally{number % 7} generations" for number in range(3000))
    expected = Analyzer().terms(text)
    shared = Analyzer()
    with ThreadPoolExecutor(8) as pool:
        assert all(terms == expected for terms in pool.map(shared.terms, [text] * 16))


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("arabic", "الكتاب", "كتاب"),
        ("russian", "книгами", "книга"),
        ("hindi", "लड़कियाँ", "लड़की"),
        ("greek", "ανθρώπους", "άνθρωπος"),
        ("tamil", "புத்தகங்கள்", "புத்தகம்"),
        ("armenian", "քաղաքներ", "քաղաքի"),
    ],
)
def test_a_word_in_another_script_is_stemmed_in_the_language_of_its_script(language, one, other):
    assert english.terms(one) == english.terms(other) == Analyzer(language).terms(one)
    assert Analyzer(None).terms(one) != Analyzer(None).terms(other)


def test_a_language_stems_the_words_of_its_own_script_itself():
    word = "књигама"
    assert Analyzer("serbian").terms(word) != Analyzer("russian").terms(word) == english.terms(word)
    assert Analyzer("russian").terms("running") == ["running"]
