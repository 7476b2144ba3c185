"""cluster.yaml is accepted by the installed Ray's own validator, as it stands and in its AWS form."""

from __future__ import annotations

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from tests.conftest import PROJECT

TEXT = (PROJECT / "cluster.yaml").read_text()


def aws_form() -> dict:
    """The file with its AWS lines uncommented and the local provider taken out, as its comment says."""
    plain, block, local = [], [], False
    for line in TEXT.splitlines():
        if line.startswith("#aws# "):
            block.append(line.removeprefix("#aws# "))
            continue
        local = line.startswith(("provider:", "auth:")) or (local and line.startswith((" ", "#")) and not line.startswith("#"))
        if not local:
            plain.append(line)
    return yaml.safe_load("\n".join([*plain, *block]))


def test_the_local_form_is_valid():
    validate_config(prepare_config(yaml.safe_load(TEXT)))


def test_the_aws_form_is_valid():
    config = aws_form()
    assert config["provider"]["type"] == "aws" and "head_ip" not in config["provider"]
    validate_config(prepare_config(config))


def test_the_validator_does_refuse_mistakes():
    with pytest.raises(Exception, match="Additional properties|clustr_name"):
        validate_config(prepare_config({**yaml.safe_load(TEXT), "clustr_name": "x"}))


@pytest.mark.parametrize("form", [yaml.safe_load(TEXT), aws_form()])
def test_every_node_gets_the_project_and_the_token(form):
    assert form["file_mounts"]["~/headrace"] == "." and "~/.ray/auth_token" in form["file_mounts"]
    assert any("pip install" in command and "headrace" in command for command in form["setup_commands"])
    for commands in (form["head_start_ray_commands"], form["worker_start_ray_commands"]):
        assert "RAY_AUTH_MODE=token" in commands[-1]
