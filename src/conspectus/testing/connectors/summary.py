"""The plug-in's part of pytest: how long histories are, and what they have counted."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from conspectus.testing.connectors.permission_histories import Tally

PROPERTY = "connector tally"
STEPS = "--connector-steps"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for longer histories."""
    parser.addoption(STEPS, type=int, default=None, help="syncs of each history of permissions")


def step_count(config: pytest.Config, usual: int) -> int:
    """Return the syncs of a history: those of the option, or as many as usual."""
    steps: int | None = config.getoption(STEPS, None)
    return usual if steps is None else steps


def note_tally(test: pytest.Item, server: str, tally: Tally) -> None:
    """Keep what a history has counted, for the end of the run."""
    counts = asdict(tally) | {"leaks": len(tally.leaks), "over_hidings": len(tally.over_hidings)}
    test.user_properties.append((PROPERTY, {"server": server, **counts}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each history."""
    tallies = list(_iterate_tallies(terminalreporter))
    if tallies:
        terminalreporter.section("histories of permissions")
    for counts in tallies:
        terminalreporter.write_line(
            f"{counts['server']:<16} {counts['comparisons']:>8,} comparisons,"
            f" {counts['after_change']:,} of them after a change;"
            f" {counts['leaks']} leaks, {counts['over_hidings']} over-hidings;"
            f" {counts['revocations']:,} revocations, in force within {counts['seconds']:.1f} s;"
            f" {counts['requests']:,} requests"
        )


def _iterate_tallies(terminalreporter: pytest.TerminalReporter) -> Iterator[dict[str, Any]]:
    reports = [report for outcome in terminalreporter.stats.values() for report in outcome]
    calls = [report for report in reports if isinstance(report, pytest.TestReport) and report.when == "call"]
    properties = [named for report in calls for named in report.user_properties]
    for name, counts in properties:
        if name == PROPERTY and isinstance(counts, dict):
            yield counts
