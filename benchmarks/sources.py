"""Random histories of permissions on real servers: python benchmarks/sources.py --steps 40.

After each step, what each person reads by eight ways is compared with the answers of the server to that
person. `SOURCE_SERVERS` names the folder that scripts/source_servers.sh prints. `--save` writes the table.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from results import Result

ROOT: Final = Path(__file__).resolve().parents[1]
SERVERS: Final = {
    "test_s3.py": "SeaweedFS",
    "test_imap.py": "Dovecot",
    "test_dokuwiki.py": "DokuWiki",
    "test_redmine.py": "Redmine",
}
"""The server that each module of tests starts."""
TALLY: Final = re.compile(
    r"(?P<comparisons>[\d,]+) comparisons, (?P<changed>[\d,]+) of them after a change; (?P<leaks>\d+) leaks, "
    r"(?P<hidden>\d+) over-hidings; (?P<revocations>[\d,]+) revocations, in force within "
    r"(?P<seconds>[\d.]+) s; (?P<requests>[\d,]+) requests"
)
COLUMNS: Final = (
    *("server", "comparisons", "right after a change", "leaks", "hidden too long", "revocations"),
    *("longest until in force, sync included", "requests"),
)


def run_history(module: str, steps: int) -> list[str]:
    """Run the histories of a module, and return the row of its server."""
    options = ["-o", "faulthandler_timeout=3600", "-p", "conspectus.testing.connectors"]
    options += ["-k", "histories_of_permissions", "--connector-steps", str(steps)]
    command = [sys.executable, "-m", "pytest", "-q", f"tests/connectors/{module}", *options]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    tally = TALLY.search(finished.stdout)
    if tally is None:
        raise SystemExit(f"{module} counted nothing:\n{finished.stdout[-2000:]}")
    counts = tally.groupdict()
    figures = [counts[name] for name in ("comparisons", "changed", "leaks", "hidden", "revocations")]
    return [SERVERS[module], *figures, f"{counts['seconds']} s", counts["requests"]]


def main() -> None:
    """Run the histories of all servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="syncs of each of the two histories")
    parser.add_argument("--save", action="store_true", help="write the table")
    arguments = parser.parse_args()
    rows = [run_history(module, arguments.steps) for module in SERVERS]
    result = Result.of(
        "Histories of permissions on real servers, each person by eight ways to read", COLUMNS, rows
    )
    print("\n".join(" | ".join(row) for row in rows))
    if arguments.save:
        result.save("sources")


if __name__ == "__main__":
    main()
