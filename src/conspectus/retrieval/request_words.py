"""The words around the subject of a request, by language.

They are those with which people ask, whatever it is about. A further language is a further entry.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from conspectus.deferred import dataclass


@dataclass(frozen=True, slots=True)
class RequestWords:
    """The words around the subject of a request in one language, as regular expressions.

    `openings` are polite beginnings, `verbs` ask for something. `forms` are kinds of answers, which `links`
    join to the subject. `mentions` say that it was spoken of, `aspects` that several parts of it are meant.
    `endings` follow the subject. `styles` begin a last sentence about the form of the answer, and have a word
    of `measures`.
    """

    openings: str
    verbs: str
    forms: str
    links: str
    mentions: str
    aspects: str
    endings: str
    styles: str
    measures: str


_ENGLISH: Final = RequestWords(
    openings=(
        r"(?:can|could|would|will) you(?: please| kindly)?|please|help me(?: to)?|do you (?:remember"
        r"|recall|know)|i(?:'d| would) like(?: you)? to|i (?:want|need)(?: you)? to"
    ),
    verbs=(
        r"(?:tell|give|show|remind|explain|describe|list|name|summari[sz]e|outline)(?: (?:to|for))? "
        r"(?:me|us)(?: again)?(?: (?:about|of))?|(?:walk|take|run|talk) (?:me|us) through|go (?:over"
        r"|through)|know(?: more)? about|(?:tell|give|show|explain|clarify|describe|list|name|summari[sz]e"
        r"|outline|recap|recall|provide|enumerate|share|write|make|create|compile|prepare)(?=\s+(?:the"
        r"|an?|my|our|your|his|her|their|all|every|each|any|some|how|what|which|when|where|who|why)\b)"
    ),
    forms=(
        r"(?:an? |the |some )?(?:[\w-]+ ){0,2}?(?:order|sequence|summary|summaries|overview|list"
        r"|timeline|recap|chronology|breakdown|rundown|outline|account)"
    ),
    links=r"of how|of what|of|about|for|on|in which|that|regarding",
    mentions=(
        r"(?:i|we|you)(?:'ve| have| had)? (?:brought up|mentioned|discussed|talked about|spoke about"
        r"|asked about|raised|covered|introduced|went (?:over|through)|gone (?:over|through))"
    ),
    aspects=(
        r"(?:the |all (?:the |of the )?)?(?:(?:main|key|different|various|several) )*(?:aspects|parts"
        r"|topics|things|points|ideas|concepts|details|elements) (?:of|about|related to|around|on|in"
        r"|from)|(?:something|anything|everything|more|a bit|a little)(?: more)? (?:about|on)"
    ),
    endings=(
        r"(?:throughout|across|during|over|in|from)(?: all)?(?: of)? (?:our|my|the|these|this)(?: \w+)? "
        r"(?:conversations?|chats?|sessions?|discussions?|messages|talks?|exchanges?)|so far|over time"
        r"|in (?:the )?(?:chronological |right |correct )?order|one by one|step by step|(?:that )?(?:i"
        r"|we)(?:'ve| have)? (?:discussed|mentioned|talked about|covered|brought up|gone over)"
    ),
    styles=(
        r"(?:please )?(?:mention|list|give|name|include|use|answer|reply|respond|write|keep|limit|be"
        r"|do not|don't|no)"
    ),
    measures=r"only|items?|points?|words?|sentences?|bullets?|lines?|brief|short|concise|details?",
)
_GERMAN: Final = RequestWords(
    openings=(
        r"(?:(?:kannst|könntest|würdest|magst) du|(?:können|könnten|würden) sie|(?:könnt|könntet"
        r"|würdet) ihr)(?: (?:mir|uns|mich))?(?: bitte)?(?: (?:sagen|zeigen|erklären|beschreiben"
        r"|erzählen|nennen))?|bitte|hilf mir(?: dabei)?|ich (?:möchte|will"
        r"|würde gerne?|hätte gerne?)|wei(?:ß|ss)t du noch|erinnerst du dich(?: daran)?"
    ),
    verbs=(
        r"(?:sage?|gib|geben|zeige?n?|nenne?n?|erzähle?n?|erkläre?n?|beschreibe?n?|schreibe?n?|liste?n?"
        r"|fasse?n?|erinner[en]?)(?: sie)? (?:mir|uns|mich)(?: (?:bitte|noch einmal|nochmal|kurz))*(?: "
        r"(?:von|über|an|auf|zusammen))?|(?:nenne?n?|beschreibe?n?|erkläre?n?|liste?n?"
        r"|fasse?n?)(?: sie)?(?=\s+(?:den|die|das|alle|meine?n?|unsere?n?|wie|was|welche)\b)"
    ),
    forms=(
        r"(?:(?:eine[nr]?|der|die|das|den) )?(?:\w+ ){0,2}?(?:reihenfolge|abfolge|zusammenfassung"
        r"|überblick|übersicht|liste|zeitleiste|verlauf|aufstellung|chronologie)(?: (?:nennen|geben"
        r"|sagen|zeigen|schreiben|beschreiben|machen))?"
    ),
    links=r"in der|davon,? wie|darüber,? wie|von|über|zu|zum|zur|der|des|für|wie",
    mentions=r"(?:ich|wir|du)",
    aspects=(
        r"(?:die |alle )?(?:(?:verschiedene|wichtigste|einzelne|unterschiedliche|mehrere)n? )*(?:aspekte"
        r"|teile|themen|punkte|dinge|einzelheiten|ideen) (?:von|der|des|über|zu|meine[rs]|unsere[rs]"
        r"|aus)"
    ),
    endings=(
        r"(?:in|während|über|aus)(?: allen?)? (?:unsere[nrm]?|meine[nrm]?|den|diese[nrm]?)(?: \w+)? "
        r"(?:gesprächs?|gesprächen?|unterhaltung(?:en)?|chats?|sitzung(?:en)?|nachrichten)|bisher"
        r"|bis jetzt|der reihe nach|in (?:der )?(?:zeitlichen |richtigen )?reihenfolge"
        r"|schritt für schritt|(?:angesprochen|erwähnt|besprochen|genannt|gesagt|behandelt) (?:habe|hast"
        r"|haben)|(?:nennen|geben|sagen|zeigen|erklären|beschreiben|auflisten|aufzählen|zusammenfassen"
        r"|erzählen|schreiben)"
    ),
    styles=(
        r"(?:bitte )?(?:nenne?n?|gib|geben|antworte?n?|schreibe?n?|verwende?n?|höchstens|nur|keine?n?"
        r"|fasse?n?)"
    ),
    measures=r"nur|punkte?n?|wörtern?|worte?n?|sätze?n?|zeilen|stichpunkte?n?|kurz|knapp|einträge?n?",
)
_FRENCH: Final = RequestWords(
    openings=(
        r"(?:(?:peux|pourrais|veux)[- ]tu|(?:pouvez|pourriez|voulez)[- ]vous|je (?:voudrais|veux"
        r"|souhaite|souhaiterais|aimerais)|aide[- ]moi à)(?: (?:me|nous))?(?: (?:dire|donner|montrer"
        r"|lister|énumérer|expliquer|décrire|résumer|rappeler|raconter|faire|parler))?|s'il (?:te"
        r"|vous) pla[iî]t|tu te souviens"
    ),
    verbs=(
        r"(?:dis|donne|montre|explique|décris|résume|rappelle|raconte|parle|fais|dites|donnez|montrez"
        r"|expliquez|décrivez|résumez|rappelez|racontez|parlez|faites)[- ](?:moi|nous)|(?:résume|résumez"
        r"|énumère|énumérez|décris|décrivez)(?=\s+(?:les?|la|l'\w+|mes|nos|mon|ma|tous|toutes|comment"
        r"|ce)\b)"
    ),
    forms=(
        r"(?:(?:une?|les?|la) |l')?(?:\w+ )?(?:ordre|résumé|liste|chronologie|aperçu|synthèse"
        r"|récapitulatif|suite)(?: (?:complète?|détaillée?|courte?|brève?|rapide))?"
    ),
    links=r"dans lequel|de la façon dont|de ce que|de|des|du|sur|concernant",
    mentions=(
        r"(?:j'ai|nous avons|on a|tu as|vous avez) (?:évoqué|mentionné|abordé|discuté(?: de)?"
        r"|parlé de|soulevé|cité)"
    ),
    aspects=(
        r"(?:(?:les|tous les|des) )?(?:(?:différents|divers|principaux|plusieurs) )*(?:aspects|points"
        r"|sujets|éléments|détails|idées|choses) (?:de|des|du|sur|liés à)"
    ),
    endings=(
        r"(?:au cours de|pendant|dans|lors de|à travers)(?: toutes)? (?:nos|mes|les|ces|notre|cette)(?: "
        r"\w+)? (?:conversations?|discussions?|échanges?|sessions?|messages)|jusqu'ici"
        r"|jusqu'à présent|au fil du temps|dans l'ordre(?: chronologique)?|un par un"
        r"|étape par étape|s'il (?:te|vous) pla[iî]t"
    ),
    styles=(
        r"(?:mentionne|cite|donne|réponds|utilise|limite|sois|mentionnez|citez|donnez|répondez|utilisez"
        r"|limitez|soyez|pas plus)"
    ),
    measures=r"seulement|uniquement|éléments?|points?|mots?|phrases?|lignes?|brefs?|brève|courte?|concise?",
)
_SPANISH: Final = RequestWords(
    openings=(
        r"(?:puedes|podrías|quieres|puede(?: usted)?|podría(?: usted)?|quiero|quisiera|me gustaría"
        r"|ayúdame a)(?: (?:decir|dar|mostrar|listar|enumerar|explicar|describir|resumir|recordar|contar"
        r"|hablar|hacer)(?:me|nos)?)?|por favor|recuerdas|te acuerdas de"
    ),
    verbs=(
        r"(?:di|da|mu[eé]stra|expl[ií]ca|descr[ií]be|res[uú]me|recu[eé]rda|cu[eé]nta|h[aá]bla|haz)(?:me"
        r"|nos)(?: (?:de|sobre))?|(?:resume|enumera|describe|explica)(?=\s+(?:el|los?|las?|mis?"
        r"|nuestr[oa]s?|tod[oa]s|cómo|qué)\b)"
    ),
    forms=(
        r"(?:(?:una?|el|los|las?) )?(?:\w+ )?(?:orden|resumen|lista|cronología|secuencia|síntesis"
        r"|recuento)(?: (?:complet[oa]|detallad[oa]|breve|cort[oa]|rápid[oa]))?"
    ),
    links=r"en (?:el )?que|en (?:el|la) cual|de cómo|de lo que|de|del|sobre|acerca de",
    mentions=(
        r"(?:(?:he|hemos|has) )?(?:mencion(?:é|ado|amos|aste)|coment(?:é|ado|amos|aste)|habl(?:é|ado"
        r"|amos|aste) de|discut(?:í|ido|imos)|trat(?:é|ado|amos)|plante(?:é|ado|amos))"
    ),
    aspects=(
        r"(?:(?:los|las|todos los|todas las) )?(?:(?:diferentes|distintos|diversos|varios|principales) "
        r")*(?:aspectos|puntos|temas|elementos|detalles|ideas|cosas) (?:de|del|sobre|relacionados con)"
    ),
    endings=(
        r"(?:a lo largo de|durante|en)(?: todas)? (?:nuestr[oa]s?|mis?|las|los|estas?)(?: \w+)? "
        r"(?:conversaci(?:ón|ones)|charlas?|sesi(?:ón|ones)|mensajes|discusi(?:ón|ones))|hasta ahora"
        r"|con el tiempo|en orden(?: cronológico)?|uno por uno|paso a paso|por favor"
    ),
    styles=r"(?:menciona|nombra|da|responde|usa|limita|sé|mencione|nombre|responda|use|limite|no más)",
    measures=(
        r"sólo|solo|solamente|únicamente|elementos?|puntos?|palabras?|frases?|líneas?|breve|cort[oa]"
        r"|concis[oa]"
    ),
)
REQUEST_WORDS: Final[Mapping[str, RequestWords]] = MappingProxyType(
    {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH, "es": _SPANISH}
)
