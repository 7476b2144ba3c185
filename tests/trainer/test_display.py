"""The line that a person sees."""

from __future__ import annotations

import time

from trainer import display
from trainer.display import StepDisplay
from trainer.runs import RunFolder


def row(step: int) -> dict:
    return {"step": step, "loss": 2.5, "lr": 0.001, "grad_norm": 0.75, "tokens": 100 * (step + 1), "seconds": 0.1}


def test_speed_and_time_left_follow_from_what_was_seen(tmp_path):
    shown = StepDisplay(RunFolder(tmp_path), 100)
    assert "tokens/s" not in shown.line(row(9), 50.0)
    text = shown.line(row(29), 60.0)  # 20 steps in 10 s: half a second a step of 100 tokens, 70 steps to go
    assert text.startswith("step 30/100 | loss 2.5000") and "200 tokens/s" in text and "0:35 left" in text


def test_it_follows_the_metrics_and_ends_with_its_block(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(display, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(display, "LINE_EVERY_S", 0.0)
    run = RunFolder(tmp_path)
    with StepDisplay(run, 3) as shown:
        run.append_metrics(row(0))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and "step 1/3" not in (said := capsys.readouterr().err):
            time.sleep(0.02)
        assert "step 1/3" in said
    assert not shown._thread.is_alive()
