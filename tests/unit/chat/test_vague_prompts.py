"""Prompts that name nothing, and prompts that name something."""

import pytest

from conspectus.chat.vague_prompts import names_nothing


@pytest.mark.parametrize(
    "prompt",
    [
        "What does that mean?",
        "Did that work?",
        "How do I fix this?",
        "Is it done?",
        "What should I do next?",
        "Why did it fail?",
        "Who broke it?",
        "Who said that?",
        "Can you explain?",
        "What happened?",
        "Any update?",
        "Is it deployed?",
        "And then?",
        "?",
        "Was bedeutet das?",
        "Hat das funktioniert?",
        "Was ist der Grund dafür?",
        "Und was machen wir jetzt?",
        "Qu'est-ce que ça veut dire ?",
        "Est-ce que ça marche ?",
        "Pourquoi\u00a0?",
        "¿Qué significa eso?",
        "¿Por qué no funcionó?",
    ],
)
def test_a_prompt_without_a_subject_names_nothing(prompt: str) -> None:
    assert names_nothing(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "API status",
        "deploy",
        "What about Zephyr?",
        "Is it Redis?",
        "What about bananas?",
        "Where is the backup?",
        "How do I fix the login?",
        "Does that endpoint need a token?",
        "zzz",
        "42",
        "Ist das Backup fertig?",
        "Was bedeutet OOM?",
        "Wer repariert die Pumpe?",
        "Que signifie la sauvegarde ?",
        "¿Qué significa la copia?",
        "error",
        "",
    ],
)
def test_a_prompt_with_a_subject_names_it(prompt: str) -> None:
    assert not names_nothing(prompt)
