"""Turns a position into a decision."""
