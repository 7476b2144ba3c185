"""Scores of models, tied to the data and configuration they came from."""
