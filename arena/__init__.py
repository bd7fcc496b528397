"""Runs games between agents, keeps the record, shows it."""
