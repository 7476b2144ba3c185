"""The statistics report of a version: figures as JSON (`build`), and the same figures as one self-contained page (`page`)."""
