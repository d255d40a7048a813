"""Names that commands and options had before, for the error message about them."""

import re
from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, str] = {
    "wiki": "connections", "wiki connect": "connections add", "wiki remove": "connections delete",
    "video": "streams", "video streams": "streams list", "video ask": "streams search",
    "video summary": "streams summarize", "video events": "events", "video alerts": "alerts",
    "video alerts listen": "alerts watch", "messages send": "messages add",
    "messages latest": "messages list", "messages chain": "messages thread",
    "memory history": "memory list", "memory show": "memory get", "memory retain": "memory retention set",
    "memory forget": "memory delete", "graph node": "graph get-node",
    "graph neighbours": "graph neighbors", "graph find": "graph search", "graph at": "graph snapshot",
    "graph names": "graph entities", "graph keep-names": "graph extraction enable",
    "graph find-names": "graph extract", "graph split": "graph undo-merge",
    "graph history": "graph merges", "groups join": "groups add-member",
    "groups leave": "groups remove-member", "keys add": "keys create",
    "requests totals": "requests summary", "tasks show": "tasks get", "jobs show": "jobs get",
}  # fmt: skip
OPTIONS: Mapping[str, str] = {
    "--floor": "--min-similarity", "--min-score": "--min-similarity", "--where": "--filter",
    "--tokens": "--max-tokens", "--budget": "--max-tokens", "--answer": "--reserve-tokens",
    "ask --answer": "--max-answer-tokens", "streams search --window": "streams context",
    "--form": "--format", "--most": "--max-count", "--begins": "--prefix", "--skip": "--offset",
    "--heir": "--transfer-to", "--preview": "--dry-run", "--keyless": "--no-auth",
    "--pulse": "--heartbeat-file", "--gap": "--merge-seconds", "--origin": "--start-time",
    "--sentences": "--join-sentences", "--no-sentences": "--keep-cues", "--times": "--parse-time",
    "--no-times": "--ignore-time", "--everywhere": "--all-conversations", "--note": "--kind note",
    "--turn": "--kind turn", "--notes": "--kind note", "--turns": "--kind turn",
    "memory recent --turns": "--limit", "memory pin --off": "memory unpin", "--speaker": "--author",
    "--data": "--data-dir", "--link": "--infer-replies", "--no-link": "--no-infer-replies",
    "--single": "--single-valued", "--words-only": "--keywords-only", "--count": "--limit",
    "connections delete --delete": "--documents",
}  # fmt: skip
"""An option that one command renamed differently has the name of the command before it."""
ALIASES: Mapping[str, str] = {"--tokens": "--max-tokens"}
"""Options that still work under their old names."""

_UNKNOWN = re.compile(r"No such (?P<kind>command|option):? '?(?P<name>[^' ]+?)'?\.?(?: .*)?", re.DOTALL)


def with_aliases(arguments: Sequence[str]) -> list[str]:
    """The arguments of the process, with current names for options that still work under old ones."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given = (each.partition("=") for each in arguments[:end])
    return [ALIASES.get(name, name) + mark + value for name, mark, value in given] + [*arguments[end:]]


def explained(message: str, command: str, arguments: Sequence[str]) -> str:
    """The message of a usage error, with the current name of what it does not know.

    `command` are the words of the command or group that raised it.
    """
    unknown = _UNKNOWN.fullmatch(message)
    if unknown is None:
        return message
    kind, name = unknown["kind"], unknown["name"]
    if kind == "option":
        known = OPTIONS.get(f"{command} {name}") or OPTIONS.get(name)
    else:
        name, known = _command(" ".join([*command.split(), name]), arguments)
    return f"No such {kind} {name!r}. It is now {known!r}." if known else message


def _command(name: str, arguments: Sequence[str]) -> tuple[str, str | None]:
    """The longest old name that the arguments begin with at this command, and its current name."""
    rest = arguments[arguments.index(name.split()[-1]) + 1 :]
    tried = [" ".join([name, *rest[:count]]) for count in (2, 1, 0)]
    return next(((each, COMMANDS[each]) for each in tried if each in COMMANDS), (name, None))
