"""The commands of `arena`, one file a group. Each parses, calls one function, prints.

Nothing but typer is imported at the top: `arena --help` must not wait for a database or a model.
"""
