"""Rules: the first that is broken is the verdict, with value and threshold; settings that name nothing are refused."""

from __future__ import annotations

import pytest

from dataproc.stages.rules import Rules, RulesConfig
from store.errors import ConfigError
from store.strict_yaml import validate
from tests.dataproc.stages.helpers import run, texts

GOOD = "The miller and his men have to be up early, that is known to all of the village. " * 5


def test_the_first_broken_rule_is_the_verdict_and_the_others_are_named():
    result = run(Rules, texts(GOOD, "# # # too short"), use=["gopher_quality"])
    (verdict,) = result.verdicts
    assert (verdict.row, verdict.rule, verdict.value, verdict.threshold) == (1, "gopher_quality.min_words", 5.0, 50.0)
    assert "gopher_quality.max_hash_per_word" in verdict.detail["also"]


def test_a_value_on_the_threshold_passes():
    text = " ".join(["the"] * 25 + ["and"] * 25)
    assert not run(Rules, texts(text), use=["gopher_quality"]).verdicts
    assert run(Rules, texts(text + " of"), use=["gopher_quality"], set={"gopher_quality.max_words": 50}).verdicts[0].threshold == 50


def test_signals_are_columns_of_all_documents_also_of_dropped_ones():
    result = run(Rules, texts(GOOD, "x"), use=["gopher_quality", "fineweb"])
    assert result.batch.column("signals.words").to_pylist() == [len(GOOD.split()), 1.0]
    assert "signals.short_line_fraction" in result.batch.schema.names


def test_verdicts_do_not_depend_on_the_batch():
    values = [GOOD, "short", GOOD + "\n" + GOOD, "{ code }"]
    together = {v.row: v for v in run(Rules, texts(*values), use=["gopher_quality", "gopher_repetition", "c4", "fineweb"]).verdicts}
    for row, value in enumerate(values):
        alone = run(Rules, texts(value), use=["gopher_quality", "gopher_repetition", "c4", "fineweb"]).verdicts
        assert (alone[0].rule, alone[0].value) == (together[row].rule, together[row].value) if alone else row not in together


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"use": ["gophr_quality"]}, 'unknown preset "gophr_quality": did you mean "gopher_quality"'),
        ({"use": ["c4"], "set": {"c4.min_sentence": 3}}, 'did you mean "c4.min_sentences"'),
        ({"use": ["c4"], "set": {"gopher_quality.min_words": 3}}, r'add "gopher_quality" to use'),
    ],
)
def test_settings_that_name_nothing_are_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        validate(settings, RulesConfig, "p.yaml")
