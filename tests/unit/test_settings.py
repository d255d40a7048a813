import pytest

from conspectus.errors import InvalidInput
from conspectus.settings import Settings


def test_the_environment_overrides_the_defaults_it_names() -> None:
    settings = Settings.from_environment({"CONSPECTUS_CHUNK_SIZE": "500", "CONSPECTUS_PATH": "/data"})
    assert (settings.chunk_size, settings.path) == (500, "/data")
    assert settings.chunk_overlap == Settings().chunk_overlap


@pytest.mark.parametrize("value", ["", "many", "1.5", "-1"])
def test_a_value_that_is_no_whole_number_is_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidInput, match="CONSPECTUS_MAX_LIMIT"):
        Settings.from_environment({"CONSPECTUS_MAX_LIMIT": value})


def test_a_level_that_no_log_has_is_refused() -> None:
    with pytest.raises(InvalidInput, match="log_level: 'loud' must be one of debug, info"):
        Settings.from_environment({"CONSPECTUS_LOG_LEVEL": "loud"})
    assert Settings.from_environment({"CONSPECTUS_LOG_LEVEL": "WARNING"}).log_level == "WARNING"


def test_other_variables_are_ignored() -> None:
    assert Settings.from_environment({"HOME": "/root"}) == Settings()


def test_the_key_of_a_server_is_never_shown() -> None:
    settings = Settings.from_environment(
        {"CONSPECTUS_URL": "http://host", "CONSPECTUS_API_KEY": "csp_secret"}
    )
    assert (settings.url, settings.api_key) == ("http://host", "csp_secret")
    assert "csp_secret" not in repr(settings)
