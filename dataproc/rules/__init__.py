"""Signals of a text and rules over them: the published quality filters as data."""
