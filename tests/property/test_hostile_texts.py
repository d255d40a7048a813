"""No text makes a public function raise an error that is none of ours."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries
from tests.support.hostile_texts import ALPHABET, WORDS, TextFunction, short_texts, text_functions

from conspectus.text.analyzer import Analyzer
from conspectus.text.clean import clean

PACKAGES = (
    *(
        "text",
        "window",
        "time_expressions.parser",
        "time_expressions.tokens",
        "graph",
        "memory",
        "model",
        "retrieval",
        "chat",
        "streams",
        "ingest",
    ),
    *(
        "access",
        "sources.caption_files",
        "sources.speech.transcripts",
        "sources.chats",
        "sources.subtitles",
        "sources.json_values",
        "index.filter_terms",
        "index.bm25",
    ),
    *("client", "cli"),
)
OUT_OF_REACH = {
    "access.reader.AuthorizedReader": "asks a store",
    "access.sessions.Sessions": "asks a store",
    "cli.agent.hook_command": "takes a folder",
    "cli.agent_helper.AgentHelper": "asks a store",
    "cli.lines.read_lines": "takes an open file",
    "cli.session.Session": "asks a store",
    "cli.text_input.read_text": "takes a file",
    "client.decode.decode_member": "is generic; Transport.member does it",
    "client.alerts.RemoteAlerts": "asks a server",
    "client.engine.RemoteEngine": "asks a server",
    "client.streams.RemoteStreams": "asks a server",
    "client.event_stream.events_in": "reads a connection; EventParser.line does it",
    "client.event_stream.follow": "asks a server",
    "client.operations.request_of": "takes a method; request_for does it",
    "client.request.body_of": "opens files",
    "client.stored_logins.StoredLogins": "takes a file",
    "client.transport.Transport": "asks a server",
    "ingest.files.Intake": "asks a store",
    "ingest.files.OutdatedDocuments": "takes folders",
    "ingest.files.Root": "takes a folder",
    "ingest.captions.CaptionCounts": "takes an error",
    "ingest.open_indexes.OpenIndexes": "asks a store",
    "ingest.sensitive.mask_report": "is generic; Screen.in_report does it",
    "ingest.column_rules.screen_column": "is generic; Screen.column does it",
    "ingest.file_preview.preview_files": "takes a reader of files",
    "ingest.sensitive.mask_for_lookup": "is generic; Screen.as_stored does it",
    "memory.json_fields.Fields": "is generic; read_line uses it",
    "memory.jsonl_reader.LineReader": "calls back; read_line uses the same reader",
    "memory.scopes.scope_and_options": "is generic; the methods of a memory service use it",
    "model.annotations.Length": "takes numbers",
    "model.checks.Arguments": "takes the declarations of a function; every method of an engine uses it",
    "retrieval.confidence.confidence_signals": "takes arrays of equal length",
    "retrieval.counting.repeated_thread_penalty": "takes arrays of equal length",
    "retrieval.first_mention.first_mention_boost": "takes arrays of equal length",
    "retrieval.ranked_candidates.RankedCandidates": "takes arrays of equal length",
    "retrieval.statements.with_statement_parts": "takes ranked candidates",
    "retrieval.thread_parts.thread_parts": "takes arrays of equal length",
    "retrieval.thread_boosts.above_typical": "takes arrays of equal length",
    "retrieval.thread_boosts.exchange_boost": "takes arrays of equal length",
    "retrieval.thread_boosts.preceding_question_boost": "takes arrays of equal length",
    "retrieval.thread_boosts.thread_boost": "takes arrays of equal length",
    "sources.subtitles.rolling_captions.unroll": "counts lines; LocalCaptions.read calls it",
    "sources.subtitles.cue_blocks.read_blocks": "takes a pattern; LocalCaptions.read calls it",
    "sources.subtitles.ttml.Clock": "takes a frame rate; LocalCaptions.read uses it",
    "streams.summarizer.Style": "takes a function that shows a time",
    "window.build.window_form": "takes a class of options",
    "window.counting.count_in_parts": "takes a function that counts",
}
OWN_FORMAT = {
    "access.browser_sign_ins.check_answer": "raises TokenFault, which a sign-in logs",
    "access.token_claims.read_claims": "raises TokenFault, which a sign-in logs",
    "access.token_claims.read_id_claims": "raises TokenFault, which a sign-in logs",
    "access.token_claims.read_logout_claims": "raises TokenFault, which a sign-in logs",
    "cli.agent_helper.event_of": "raises ValueError, which the helper logs",
    "cli.agent_helper.one_of_levels": "raises ValueError, which the helper logs",
    "cli.agent_helper.response_json": "an event that event_of read",
    "cli.agent_hook.answer_without_helper": "raises what the hook logs, for a payload that is no event",
    "cli.agent_hook.ask_helper": "speaks to a socket",
    "cli.agent_hook.common_directory": "takes a path that exists",
    "cli.agent_hook.read_linked_directory": "takes a path that exists",
    "cli.agent_hook.log": "writes to a folder that exists",
    "cli.agent_hook.main": "raises what the hook logs",
    "cli.agent_hook.open_own_file": "takes the name of a file of its own",
    "cli.agent_hook.project_notes": "takes a level that the command checked",
    "cli.agent_hook.project_root": "raises ValueError, which the hook logs",
    "cli.agent_hook.read_notes": "takes a level that the command checked",
    "cli.agent_hook.read_path": "takes a path that exists",
    "cli.agent_hook.spool": "writes to its own folder",
    "cli.derived.operation_at": "the path of an operation, from our own tables",
    "cli.demo.data": "the name of a file of the package",
    "cli.demo.pages_of": "the name of a file of the package",
    "cli.errors.confirm": "asks the terminal",
    "cli.main.build_app": "reads the signatures of all commands, whatever the text",
    "cli.main.run": "runs a command",
    "cli.output.record_fields": "takes a dataclass",
    "cli.stream_timeline.blocks": "characters of the package, of which there are some",
    "graph.expansion.find_starts": "nodes by the names that it is given",
    "index.filter_terms.fact_entries": "the fields of a stored document",
    "ingest.sensitive.Screen.as_stored": "the name of a column",
    "ingest.sensitive.Screen.column": "the name of a column",
    "model.text_columns.rule_of": "the name of a column",
    "model.annotations.Range.require": "numbers, and the name of a setting in a declaration",
    "model.checks.SettingRange.require": "numbers, and the name of a setting in a declaration",
    "ingest.captions.by_video": "a name that path_within made, which is never empty",
    "memory.facts.FactForm.read": "raises Unsatisfied, for which the model is asked again",
    "memory.facts.parse_facts": "what FactForm.read gave",
    "memory.retention.read_from": "the beginning of a source of memories",
    "retrieval.profiles.part_names": "the name of a profile that was checked",
    "sources.json_values.load": "raises NotJson, which readers turn into UnreadableFile",
    "sources.subtitles.json_captions.read_json": "raises ValueError, as LocalCaptions.read expects",
    "sources.subtitles.json_captions.read_json_lines": "raises ValueError, as read_json",
    "sources.subtitles.cues.to_seconds": "the digits that a pattern matched",
    "sources.subtitles.ttml.read_ttml": "raises XMLSyntaxError, for which LocalCaptions.read raises ours",
    "streams.json_schema_output.JsonSchemaOutput.read": "raises Unsatisfied; the model is asked again",
    "streams.json_schema_output.answer_json": "raises Unsatisfied; the model is asked again",
    "streams.summary_runner.request_from_json": "what a job was stored with",
    "text.replies.forest.Forest.sum_trees": "trees of the package, by the names of figures",
    "text.replies.past.Past.add": "people of whom some may be replaced",
    "text.replies.features.features": "messages before this one, of which there are some",
    "text.replies.forest.judge": "trees of the package",
    "text.replies.forest.tabulate": "figures of messages, by their names",
    "text.urls.Url.resolve": "an address that parse_url gave",
    "text.vectors.unpack_row": "a vector as it is stored",
}
"""Functions whose text has a form, and who gives it."""
STORED = {"memory.scopes.common_prefix", "text.lines.LinePattern.matches"}
"""Functions of texts that were cleaned before."""
EVERY = {
    **dict.fromkeys(("graph.svg.to_svg", "ingest.sensitive_spans.find_sensitive"), 100),
    **dict.fromkeys(("graph.graphml.to_graphml", "graph.export.to_json", "graph.expansion.names_beyond"), 10),
    **dict.fromkeys(("graph.entity_linking.link", "memory.facts.collect_cited_facts"), 10),
    "sources.caption_files.LocalCaptions.read": 10,
    "text.replies.linker.Linker.link": 10,
}
"""Slow functions, which get one of so many short texts."""
TEXTS = st.lists(st.sampled_from((*ALPHABET, *WORDS)) | st.text(max_size=3), max_size=30).map("".join)


@cache
def functions_of(package: str) -> list[TextFunction]:
    return list(text_functions(package))


def faults(package: str, texts: list[str]) -> list[str]:
    lines = []
    for function in functions_of(package):
        if function.call is None or function.name in OWN_FORMAT:
            continue
        for text in texts[:: EVERY.get(function.name, 1)]:
            fault = function.fault(clean(text) if function.name in STORED else text)
            if fault is not None:
                lines.append(f"{function.name}({text!a}): {fault!r}")
                break
    return lines


@pytest.mark.parametrize("package", PACKAGES)
def test_no_short_text_makes_a_function_raise_a_foreign_error(package):
    assert functions_of(package)
    assert faults(package, list(short_texts())) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_long_text_makes_a_function_raise_a_foreign_error(package):
    @settings(max_examples=tries(50), deadline=None)
    @given(TEXTS)
    def check(text):
        assert faults(package, [text]) == []

    check()


def test_each_exemption_is_of_a_function_that_exists():
    functions = {function.name: function for package in PACKAGES for function in functions_of(package)}
    assert {name for name, function in functions.items() if function.call is None} == OUT_OF_REACH.keys()
    assert functions.keys() >= OWN_FORMAT.keys() | STORED | EVERY.keys()


@pytest.mark.parametrize("language", [None, "english", "german", "arabic", "tamil"])
def test_every_text_has_terms_in_every_language(language):
    analyzer = Analyzer(language)
    for text in (*(f"a{sign}'{sign}" for sign in ALPHABET), *(f"{sign}'{sign}" for sign in ALPHABET)):
        assert "" not in analyzer.terms(text)
