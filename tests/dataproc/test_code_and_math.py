"""A pipeline over web pages, code and mathematics: each judged by the rules of its domain, and settings that name no domain refused."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest

from dataproc.config import load_pipeline
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.rules.presets import select
from dataproc.rules.signals import compute
from dataproc.stages.clean import Clean
from dataproc.stages.rules import Rules
from dataproc.versions import open_version
from store.errors import ConfigError
from tests.dataproc.stages.helpers import run, texts

WEB = "The miller and his men have to be up early, that is known to all of the village. " * 5
CODE = "# SPDX-License-Identifier: MIT\nimport os\n\n\ndef home():\n    return os.environ['HOME']\n"
FORMULA = "$$\\sum_{n=1}^{k} a_{[1]} &lt; \\frac{1}{2}$$"
MATH = "We show that the sum of the first numbers is found with ease, and that it is the one to have.\n" * 5 + FORMULA
STAGES = """
  - clean: {drop_lines: [c4], keep_math: true}
  - rules: {use: [gopher_quality], by_domain: {code: {use: [code]}, math: {use: [math@openwebmath]}}}
  - licence: {}
"""


def pipeline(folder: Path, stages: str, *domains: str) -> str:
    inputs = "".join(f"  - {{name: {name}, format: jsonl, path: {name}.jsonl, domain: {name}}}\n" for name in domains)
    path = folder / "pipeline.yaml"
    path.write_text(f"dataset: mixed\nversion: v1\nowner: a@example.org\ninputs:\n{inputs}stages:\n{stages}\n")
    return str(path)


def test_each_domain_is_judged_by_its_own_rules(tmp_path):
    for name, texts_of_it in (("web", [WEB, MATH[-60:]]), ("code", [CODE, "x = 1"]), ("math", [MATH, WEB])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts_of_it))
    stages = STAGES.replace("  - clean: {drop_lines: [c4], keep_math: true}\n", "  - clean: {keep_math: true}\n")
    result = run_pipeline(pipeline(tmp_path, stages, "web", "code", "math"), str(tmp_path / "store"), PlainLoop, quiet=True)
    assert result["counts"]["dropped"] == {
        "rules.code.min_lines": 1,
        "rules.gopher_quality.min_words": 1,
        "rules.math@openwebmath.min_formulas": 1,
    }
    version = open_version(str(tmp_path / "store"), "mixed@v1")
    kept = {row["domain"]: row for batch in version.batches(["domain", "text", "meta", "signals"]) for row in batch.to_pylist()}
    assert json.loads(kept["code"]["meta"]) == {"licence": "MIT", "licence_kind": "permissive"}
    assert FORMULA in kept["math"]["text"] and kept["web"]["signals"]["longest_line"] == len(WEB.strip())


@pytest.mark.parametrize(
    ("domains", "says"),
    [
        (("web", "code"), 'stage rules: by_domain: unknown domain "math"'),
        (("web", "codes", "math"), 'unknown domain "code": did you mean "codes"'),
    ],
)
def test_a_domain_that_no_input_has_is_refused(tmp_path, domains, says):
    with pytest.raises(ConfigError, match=says):
        load_pipeline(pipeline(tmp_path, STAGES, *domains))


def test_line_rules_leave_nothing_of_code_and_the_brace_rule_nothing_of_mathematics():
    """Why both need rules of their own: what docs/pipeline-file.md warns of."""
    assert {verdict.rule for verdict in run(Rules, texts(MATH), use=["c4"]).verdicts} == {"c4.max_curly_brackets"}
    assert {verdict.rule for verdict in run(Clean, texts(CODE), drop_lines=["c4"]).verdicts} == {"empty"}


def test_of_installed_packages_nearly_all_files_that_people_wrote_are_kept():
    root = Path(sysconfig.get_paths()["purelib"])
    files = [path for package in ("pydantic", "numpy/lib", "fsspec", "typer") for path in sorted(root.glob(f"{package}/**/*.py"))]
    files = [path for path in files if path.stat().st_size > 500]
    found = run(Rules, texts(*(path.read_text("utf-8") for path in files)), use=["code"])
    assert len(files) > 150 and len(found.verdicts) < 0.03 * len(files)


def test_of_generated_files_none_is_kept():
    root = Path(sysconfig.get_paths()["purelib"])
    files = sorted(root.glob("ray/core/generated/*_pb2.py"))
    found = run(Rules, texts(*(path.read_text("utf-8") for path in files)), use=["code"])
    assert len(files) > 20 and len(found.verdicts) == len(files)


def test_code_signals_are_computed_only_where_a_rule_asks():
    assert not {"longest_line", "formulas"} & set(select(("gopher_quality", "c4"), {}).signals())
    column = texts(CODE).column("text")
    assert compute(column, ["longest_line"])["longest_line"].to_pylist() == [30.0]
