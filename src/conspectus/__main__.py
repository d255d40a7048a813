"""The command line as a module: `python -m conspectus`."""

from conspectus.cli.entry import main

main()
