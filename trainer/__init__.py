"""Training: a reader that is a pure function, a model that knows no ranks, a loop that resumes bit for bit."""
