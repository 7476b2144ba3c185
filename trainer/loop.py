"""A training run, in the order in which things happen. Runs in every worker; rank 0 writes.

Deterministic: the batch is a function of the step, the rate is a function of the step, sums are taken in a fixed order, threads are
fixed. So a run that was killed and goes on from a checkpoint has the losses of one that was not, bit for bit. So has one on another
number of workers when each of them has a power of two of whole microbatches (see summation.py); otherwise the batches are the same and
the losses differ in their last bits.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import torch
import torch.distributed as dist

from store.errors import HeadraceError
from trainer import checkpoint
from trainer.model import Decoder, token_losses
from trainer.reader import Reader, ReaderState
from trainer.recipe import Recipe
from trainer.runs import RunFolder
from trainer.summation import PairwiseSum, sum_over_workers


class Superseded(HeadraceError):
    """Another attempt at the same run has started: this one must not write any more."""


def train_worker(settings: dict[str, Any]) -> None:
    """One worker's life. settings: {store, run: name, attempt: token, hooks: ["module:function"]}; a process group is up."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = RunFolder.of(settings["store"], settings["run"])
    recipe, mixture = folder.recipe(), folder.mixture()
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)

    model = Decoder(recipe.model, mixture.tokenizer["vocabulary"])
    model.initialise(recipe.seed)
    optimizer = make_optimizer(model, recipe)
    start, state = restore(folder, model, optimizer, mixture.digest)
    reader = Reader(mixture, state.skip)
    hooks = [_load_hook(name) for name in settings["hooks"]]
    if rank == 0:
        checkpoint.clear_unfinished(folder.checkpoints)
        folder.cut_metrics(start)

    for step in range(start, recipe.steps):
        began = time.perf_counter()
        rate = recipe.optimizer.lr * recipe.schedule.ratio(step, recipe.steps)
        loss = accumulate(model, reader, recipe, step, rank, world)
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimizer.clip))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        if rank == 0:
            _require_current(folder, settings["attempt"])
            tokens = recipe.batch_size * mixture.sequence_length
            seconds = time.perf_counter() - began
            row = {"step": step, "loss": loss, "lr": rate, "grad_norm": norm, "tokens": tokens * (step + 1), "seconds": round(seconds, 4)}
            row |= {name: value for hook in hooks for name, value in hook(recipe, mixture, model, step + 1).items()}
            folder.append_metrics(row)
            if (step + 1) % recipe.checkpoint.every == 0 or step + 1 == recipe.steps:
                write_checkpoint(folder, recipe, mixture.digest, model, optimizer, step + 1, reader)
    reader.close()


def make_optimizer(model: Decoder, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only."""
    spec = recipe.optimizer
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": spec.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=spec.lr, betas=spec.betas, eps=spec.eps)


def accumulate(model: Decoder, reader: Reader, recipe: Recipe, step: int, rank: int, world: int) -> float:
    """Gradients of the mean loss over the global batch of a step, on every worker; returns that loss in nats a token."""
    share = recipe.batch_size // world
    batch = torch.from_numpy(reader.batch(step * recipe.batch_size + rank * share, share))  # (share, T + 1)
    targets = recipe.batch_size * (batch.shape[1] - 1)
    gradients, losses = PairwiseSum(), PairwiseSum()
    for part in batch.split(recipe.microbatch):
        model.zero_grad(set_to_none=True)
        loss = token_losses(model, part).sum()
        (loss / targets).backward()
        gradients.add(torch.cat([p.grad.flatten() for p in model.parameters()]))
        losses.add(loss.detach().double()[None])
    flat = sum_over_workers(gradients.total(), world)
    for p, gradient in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True):
        p.grad.copy_(gradient.view_as(p))
    return float(sum_over_workers(losses.total(), world) / targets)


def restore(folder: RunFolder, model: Decoder, optimizer: torch.optim.Optimizer, mixture_digest: str) -> tuple[int, ReaderState]:
    """Loads the newest sound checkpoint into model and optimizer. Returns the steps done and the reader's state."""
    found, _ = checkpoint.latest(folder.checkpoints)
    if found is None:
        return 0, ReaderState(mixture_digest, 0)
    state = ReaderState.from_json(found.manifest["reader"])
    if state.mixture_digest != mixture_digest:
        raise HeadraceError(f"{found.path} was made with mixture {state.mixture_digest[:12]}, the run has {mixture_digest[:12]}")
    model.load_state_dict(found.load("model"))
    optimizer.load_state_dict(found.load("optimizer"))
    torch.set_rng_state(found.load("random"))
    return found.step, state


def write_checkpoint(folder: RunFolder, recipe: Recipe, mixture_digest: str, model, optimizer, step: int, reader: Reader) -> None:
    """Saves everything that the next step depends on. The learning rate and the batches follow from the step."""
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state()}
    state = ReaderState(mixture_digest, step * recipe.batch_size, reader.skip)
    facts = {"reader": state.to_json(), "recipe_digest": recipe.digest(), "mixture_digest": mixture_digest, "run": recipe.run}
    checkpoint.save(folder.checkpoints, step, parts, facts, recipe.checkpoint.keep)


def _require_current(folder: RunFolder, attempt: str) -> None:
    if not folder.is_current(attempt):
        raise Superseded(f"run {folder.path.name} was started again elsewhere: this attempt ends")


def _load_hook(name: str):
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
