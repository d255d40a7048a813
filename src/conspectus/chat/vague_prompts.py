"""Vague prompts: questions that name nothing, such as "Did that work?"."""

from typing import Final

from conspectus.chat.content_words import content_words, inner_names, words
from conspectus.chat.query_rewriting import GOING_ON, PRONOUNS
from conspectus.text.analyzer import ALL_STOP_WORDS

_VAGUE = """
mean means meant work works worked working fix fixes fixed fixing solve solved happen happens happened
happening do does did done doing try tried change changed changes problem problems issue issues cause caused
reason fail fails failed failing break breaks broke broken finish finished ready correct right wrong true
false possible next now today again update updates status result results idea ideas news agree agreed decide
decided talk talked talking discuss discussed discussion conversation thread message messages reply replied
write wrote written summary summarize summarise topic point recap continue
"""
VAGUE: Final = frozenset(_VAGUE.split())
"""Content words that a conversation must fill with a subject."""
POINTING: Final = PRONOUNS | {"that", "there", "so"}

_GERMAN = """
was wer wen wem wann wo wie warum wieso weshalb woran worum womit das der die den dem des es er sie ist sind
war waren hat haben habe ich wir du ihr man ein eine einen und oder aber dann denn doch schon noch nicht kein
keine mit von zu zum im in am an auf für so da dazu davon dafür daran mir uns dir als soll sollen sollte kann
können kannst muss müssen wird wurde worden bitte jetzt heute wieder mal genau eigentlich also gibt gab
bedeutet bedeuten heißt heisst meint meinst gemeint funktioniert funktionierte geklappt klappt geht ging lief
läuft passiert passierte geschah geschehen mache machen macht gemacht tun tue getan fertig erledigt behoben
behebe beheben behebt repariere reparieren repariert gelöst lösen löse lösung problem grund ursache status
stand ergebnis idee ideen nächstes nächste nächsten schritt weiter kaputt richtig falsch gesagt sagte sagt
geschrieben schrieb entschieden neues neuigkeiten erklären erkläre erklär zusammenfassung thema
"""
_FRENCH = """
qu'est-ce qu'est que qui quoi quel quelle quels quelles où quand comment pourquoi est-ce ça cela ceci ce c'est
ces cette est sont était a ont ai as avons avez il elle on je j'ai nous tu vous le la les l'a un une des de du
d'accord et ou mais alors donc déjà encore pas ne n'a n'est en y se s'est s'est-il qu'il qu'on qu'a t-il dois
doit peut peux puis-je pouvez-vous peux-tu faut faire fait faites maintenant aujourd'hui après suite plus
veut dire signifie signifient marche marché fonctionne fonctionné passe passé passe-t-il arrivé fini terminé
prêt corriger corrigé réparer réparé résoudre résolu problème raison cause statut résultat idée idées
prochaine prochain étape cassé vrai faux dit disait écrit décidé nouvelles expliquer explique résumé sujet
"""
_SPANISH = """
qué que quién quiénes cuándo dónde cómo por para cuál es está están son era fue ha han he hemos eso esto esa
ese ello lo la el los las le un una unos y o pero entonces ya no sí me se te nos yo tú con de del en a al si
debo debería debemos puedo puede puedes hay ahora hoy después otra vez más quiere decir
significa significan funciona funcionó funcionado pasa pasó pasado ocurre ocurrió hacer hago hacemos hizo
hecho listo lista terminado terminó arreglar arreglo arreglado resolver resuelto problema razón causa estado
resultado idea ideas siguiente próximo paso roto correcto verdad falso dijo dicho escribió decidió novedades
explicar explica explícame resumen tema
"""
OTHER_LANGUAGES: Final = tuple(frozenset(table.split()) for table in (_GERMAN, _FRENCH, _SPANISH))
"""Function words and words without a subject, a table for each language."""


def names_nothing(prompt: str) -> bool:
    """Return whether a prompt has no subject of its own: what it is about must stand in the conversation.

    It has at most one content word if a pronoun refers back, else none. "status" and "fix" are no subjects.
    In other languages than English, each of its words is in the table of the language.
    """
    prompt_words = set(words(prompt.lower().replace("\u2019", "'")))
    if prompt_words and any(prompt_words <= table for table in OTHER_LANGUAGES):
        return True
    if not prompt.strip() or inner_names(prompt):
        return False
    subjects = [word for word in content_words(prompt) if word.lower() not in VAGUE | ALL_STOP_WORDS]
    refers_back = not POINTING.isdisjoint(words(prompt.lower())) and not GOING_ON.match(prompt)
    return len(subjects) <= int(refers_back)
