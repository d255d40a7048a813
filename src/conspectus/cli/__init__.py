"""The command line: each command says what it wants from the engine and shows what comes back."""
