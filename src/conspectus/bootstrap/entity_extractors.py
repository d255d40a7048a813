"""What names are found with, by the settings."""

from pathlib import Path

from conspectus.errors import ChatNotConfigured, InvalidInput
from conspectus.graph.entity_rules import RULES, RuleExtractor
from conspectus.graph.name_keys import key_of
from conspectus.ports.chat import ChatModel
from conspectus.ports.graphs import EntityExtractor
from conspectus.settings import Settings

_CHAT = "chat"
_SPACY = "spacy:"
_GLINER = "gliner:"


def checked_names(settings: Settings) -> None:
    """Raises InvalidInput for a name of no known form."""
    chosen = settings.entity_extractor
    folder = chosen.removeprefix(_SPACY).removeprefix(_GLINER)
    if chosen not in (RULES, _CHAT) and (folder in (chosen, "")):
        raise InvalidInput("names", f"{chosen!r} is not rules, spacy:PATH, gliner:PATH or chat")


def extractor_of(settings: Settings, chat_model: ChatModel | None) -> EntityExtractor:
    """What the settings name. Raises InvalidInput, MissingExtra, or ChatNotConfigured."""
    checked_names(settings)
    chosen = settings.entity_extractor
    if chosen == RULES:
        return RuleExtractor()
    if chosen.startswith(_SPACY):
        from conspectus.providers.spacy_entities import SpacyNames

        return SpacyNames(Path(chosen.removeprefix(_SPACY)).expanduser(), key_of)
    if chosen.startswith(_GLINER):
        from conspectus.providers.gliner_entities import GlinerNames

        return GlinerNames.load(Path(chosen.removeprefix(_GLINER)).expanduser(), key_of)
    if chat_model is None:
        raise ChatNotConfigured
    from conspectus.providers.llm_entities import ChatNames

    return ChatNames(chat_model, key_of)
