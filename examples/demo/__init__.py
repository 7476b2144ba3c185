"""From text that every Python has to a trained, evaluated model: `python -m examples.demo`, or `make demo`."""
