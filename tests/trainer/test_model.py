"""The decoder: causal, deterministic, near the uniform loss when fresh, able to learn."""

from __future__ import annotations

import math

import pytest
import torch

from store.errors import ConfigError
from store.strict_yaml import validate
from trainer.model import Decoder, RMSNorm, rotate, token_losses
from trainer.recipe import ModelSpec, Recipe

SPEC = ModelSpec(layers=2, width=32, heads=4, kv_heads=2)


def made(seed: int = 0) -> Decoder:
    model = Decoder(SPEC, 50)
    model.initialise(seed)
    return model


def test_no_token_sees_a_later_one():
    model, ids = made(), torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[:, 8:] = 7
    assert torch.equal(model(ids)[:, :8], model(changed)[:, :8])
    assert not torch.equal(model(ids)[:, 8:], model(changed)[:, 8:])


def test_a_fresh_model_is_near_the_uniform_distribution():
    ids = torch.randint(0, 50, (4, 33), generator=torch.Generator().manual_seed(1))
    assert token_losses(made(), ids).mean().item() == pytest.approx(math.log(50), abs=0.15)


def test_the_seed_decides_the_weights():
    one, two, other = made(1), made(1), made(2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_it_learns_a_repeated_sequence():
    model = made()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    ids = torch.arange(0, 40).repeat(2, 1)
    for _ in range(60):
        optimizer.zero_grad()
        token_losses(model, ids).mean().backward()
        optimizer.step()
    assert token_losses(model, ids).mean().item() < 0.1


def test_the_norm_is_torchs_own():
    norm, x = RMSNorm(24), torch.randn(3, 5, 24, generator=torch.Generator().manual_seed(2))
    torch.nn.init.normal_(norm.weight)
    assert torch.allclose(norm(x), torch.nn.functional.rms_norm(x, (24,), norm.weight, norm.eps), atol=1e-6)


def test_rotary_scores_depend_on_the_distance_alone():
    """The property that defines rotary positions: <R(m) q, R(n) k> is a function of m - n."""
    generator = torch.Generator().manual_seed(3)
    size, length = 8, 40
    q, k = (torch.randn(size, generator=generator).double().expand(1, 1, length, size) for _ in range(2))
    angles = torch.arange(length).double()[:, None] * 10_000.0 ** (-torch.arange(0, size, 2).double() / size)
    rotation = (angles.cos(), angles.sin())
    scores = (rotate(q, rotation) @ rotate(k, rotation).transpose(-1, -2))[0, 0]
    for distance in range(-10, 11):
        along = torch.diagonal(scores, distance)
        assert torch.allclose(along, along[0].expand_as(along), atol=1e-12)
    assert scores[0, 0].item() == pytest.approx((q[0, 0, 0] @ k[0, 0, 0]).item())
    assert scores.flatten().std() > 0.1


def test_shared_heads_are_full_heads_with_equal_weights():
    """Grouped-query attention equals plain attention whose key and value heads are copies."""
    grouped = made()
    plain = Decoder(ModelSpec(layers=2, width=32, heads=4), 50)
    state = {}
    for name, value in grouped.state_dict().items():
        copies = name.endswith(("attention.k.weight", "attention.v.weight"))
        state[name] = value.view(2, 8, 32).repeat_interleave(2, 0).reshape(32, 32) if copies else value
    plain.load_state_dict(state)
    ids = torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(grouped(ids), plain(ids), atol=1e-6)


def test_a_batch_that_workers_cannot_share_is_refused():
    value = {
        "run": "r",
        "owner": "o",
        "mixture": __file__,
        "model": SPEC.model_dump(),
        "steps": 1,
        "batch_size": 5,
        "workers": 2,
        "optimizer": {"lr": 1},
    }
    with pytest.raises(ConfigError, match="batch_size 5 must be a multiple of workers 2"):
        validate(value, Recipe, "recipe.yaml")
