"""A small Llama-type decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Knows nothing of ranks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from trainer.recipe import ModelSpec


class RMSNorm(nn.Module):
    """Root mean square norm (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    """Causal attention with rotary positions (Su et al. 2021); several query heads may share a key and value head."""

    def __init__(self, spec: ModelSpec):
        super().__init__()
        self.heads, self.kv_heads = spec.heads, spec.kv_heads or spec.heads
        self.size = spec.width // spec.heads
        self.q = nn.Linear(spec.width, self.heads * self.size, bias=False)
        self.k = nn.Linear(spec.width, self.kv_heads * self.size, bias=False)
        self.v = nn.Linear(spec.width, self.kv_heads * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, spec.width, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        b, t, _ = x.shape  # (B, T, width)
        q = self.q(x).view(b, t, self.heads, self.size).transpose(1, 2)  # (B, heads, T, size)
        k = self.k(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        q, k = rotate(q, rotation), rotate(k, rotation)
        if self.kv_heads != self.heads:
            k, v = (y.repeat_interleave(self.heads // self.kv_heads, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, -1))


def rotate(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Turns pairs of features by their position. x: (B, heads, T, size), rotation: cos and sin of (T, size / 2)."""
    cos, sin = rotation
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Block(nn.Module):
    """Attention and MLP, each behind a norm and added to what came in."""

    def __init__(self, spec: ModelSpec):
        super().__init__()
        hidden = spec.ffn or -(-spec.width * 8 // 3 // 16) * 16  # 8/3 of the width, rounded up to a multiple of 16
        self.norm1, self.norm2 = RMSNorm(spec.width), RMSNorm(spec.width)
        self.attention = Attention(spec)
        self.gate = nn.Linear(spec.width, hidden, bias=False)
        self.up = nn.Linear(spec.width, hidden, bias=False)
        self.down = nn.Linear(hidden, spec.width, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), rotation)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """Token ids (B, T) to logits (B, T, vocabulary)."""

    def __init__(self, spec: ModelSpec, vocabulary: int):
        super().__init__()
        self.spec = spec
        self.embedding = nn.Embedding(vocabulary, spec.width)
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.layers))
        self.norm = RMSNorm(spec.width)
        self.head = nn.Linear(spec.width, vocabulary, bias=False)
        if spec.tie_embeddings:
            self.head.weight = self.embedding.weight

    def initialise(self, seed: int) -> None:
        """Normal weights of deviation 0.02, those into the residual stream scaled by 1/sqrt(2 layers) (Radford et al. 2019)."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                inner = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / (2 * self.spec.layers) ** 0.5 if inner else 0.02, generator=generator)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        size = self.spec.width // self.spec.heads
        frequencies = self.spec.rope_base ** (-torch.arange(0, size, 2, dtype=torch.float32, device=ids.device) / size)
        angles = torch.arange(ids.shape[1], dtype=torch.float32, device=ids.device)[:, None] * frequencies  # (T, size / 2)
        rotation = (angles.cos(), angles.sin())
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, rotation)
        return self.head(self.norm(x))


def token_losses(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood in nats of tokens 1..T of each row given those before. ids: (B, T + 1) -> (B, T)."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none").view(ids.shape[0], -1)
