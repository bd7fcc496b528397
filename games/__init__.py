"""Pure rules: chess (on python-chess) and janggi (ours)."""
