"""Personal data and secrets in text: candidates of the kernel are looked at, one file a kind."""
