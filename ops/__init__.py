"""The command line, and what governs runs."""
