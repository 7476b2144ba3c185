"""Quality models: made from labelled documents, judged on sites they have not seen, kept in the store, run over columns of text."""
