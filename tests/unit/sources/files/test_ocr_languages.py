"""Pages of a scan are recognized in the language that the pages before them had."""

from conspectus.sources.files.ocr_languages import ALL_LANGUAGES, LanguageChoice

ENGLISH_PAGE = ["eng"] * 95 + ["deu"] * 5


def test_a_page_in_one_language_chooses_it_for_the_file() -> None:
    choice = LanguageChoice({"eng", "deu"})
    choice.learn(ENGLISH_PAGE, 95)
    assert choice.current == "eng"
    choice.begin_file()
    assert choice.current == ALL_LANGUAGES


def test_short_and_mixed_pages_choose_nothing() -> None:
    choice = LanguageChoice({"eng", "deu"})
    for word_languages in ([], ["eng"] * 40, ["eng"] * 60 + ["deu"] * 40):
        choice.learn(word_languages, 95)
        assert choice.current == ALL_LANGUAGES


def test_a_page_of_lower_confidence_is_not_in_the_language() -> None:
    choice = LanguageChoice({"eng", "deu"})
    choice.learn(ENGLISH_PAGE, 90)
    assert choice.suits(89) and choice.suits(95)
    assert not choice.suits(91)


def test_with_one_engine_every_page_suits() -> None:
    choice = LanguageChoice(())
    choice.learn(ENGLISH_PAGE, 95)
    assert choice.current == ALL_LANGUAGES and choice.suits(10)
