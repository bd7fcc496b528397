"""The arena's shape on one runner, beside a plain torch forward, in the same run.

    python -m benchmarks.forward [--model smollm2-135m] [--repeats 3] [--threads N] [--clock cpu]

A masked-walk move: 16 sequences with 380 cached tokens each get 87 fresh rows each, then 4 decode
steps. A scored move: the same fresh rows with a trie of 45 rows, one step. The plain forward has
fused projections, one product a weight for all rows, SDPA a sequence, the head on needed rows only.
Prints moves/s, the largest product's speed, counted FLOP and their share of that peak. `--clock
cpu` with `--threads 1` counts CPU seconds: for machines that others use too.
"""

import argparse
import platform
import time
from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import EngineConfig
from engine.hub import ensure
from engine.model_config import ModelConfig
from engine.runner import ModelRunner
from engine.trie import ChoiceTrie
from engine.types import SampleSpec, SamplingParams, SequenceStep, StepPlan, TokenIds
from engine.weights import load_tensors, read_config

SEQUENCES, CACHED, FRESH, DECODES, TRIE_ROWS = 16, 380, 87, 4, 45
BLOCKS = 40  # a sequence
ALLOWED = tuple(range(100, 2100, 100))
Clock = Callable[[], float]


class Plain:
    """A forward as one would write it: tensors of keys and values a sequence, grown by cat."""

    def __init__(self, folder: str, config: ModelConfig) -> None:
        self.config = config
        weights = load_tensors(folder, config)
        self.embedding = weights["model.embed_tokens.weight"].float()
        self.norm = weights["model.norm.weight"].float()
        self.layers = []
        for i in range(config.num_hidden_layers):
            w = {
                name.removeprefix(f"model.layers.{i}."): weights[name].float()
                for name in weights
                if name.startswith(f"model.layers.{i}.")
            }
            qkv = torch.cat([w[f"self_attn.{n}_proj.weight"] for n in "qkv"])
            gate_up = torch.cat([w[f"mlp.{n}_proj.weight"] for n in ("gate", "up")])
            self.layers.append((w, qkv, gate_up))
        frequencies = config.rope.theta ** -(torch.arange(0, config.head_dim, 2) / config.head_dim)
        angles = torch.outer(torch.arange(1024.0), frequencies)
        self.cos, self.sin = angles.cos(), angles.sin()
        self.cache: list[list[tuple[Tensor, Tensor]]] = []

    def step(self, tokens: list[TokenIds]) -> Tensor:
        """Add tokens to every sequence; logits of each sequence's last row."""
        c = self.config
        counts = [len(t) for t in tokens]
        past = [0] * len(tokens) if not self.cache else [kv[0].shape[1] for kv in self.cache[0]]
        positions = torch.cat([torch.arange(p, p + n) for p, n in zip(past, counts, strict=True)])
        cos, sin = self.cos[positions, None], self.sin[positions, None]
        x = F.embedding(torch.tensor([t for ts in tokens for t in ts]), self.embedding)
        grown = []
        for i, (w, qkv, gate_up) in enumerate(self.layers):
            h = F.rms_norm(x, x.shape[-1:], w["input_layernorm.weight"], c.rms_norm_eps)
            heads = F.linear(h, qkv).view(len(x), -1, c.head_dim)
            turned = c.num_attention_heads + c.num_key_value_heads
            q, k, v = heads.tensor_split((c.num_attention_heads, turned), dim=1)
            q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
            mixed, kv = self._attend(q, k, v, counts, i)
            grown.append(kv)
            x = x + F.linear(mixed, w["self_attn.o_proj.weight"])
            h = F.rms_norm(x, x.shape[-1:], w["post_attention_layernorm.weight"], c.rms_norm_eps)
            gate, up = F.linear(h, gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w["mlp.down_proj.weight"])
        self.cache = grown
        last = x[torch.tensor(counts).cumsum(0) - 1]
        return F.linear(
            F.rms_norm(last, last.shape[-1:], self.norm, c.rms_norm_eps), self.embedding
        )

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, counts: list[int], layer: int
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        out, grown = [], []
        parts = [torch.split(t.transpose(0, 1), counts, dim=1) for t in (q, k, v)]
        for s, (qs, ks, vs) in enumerate(zip(*parts, strict=True)):
            if self.cache:
                ks = torch.cat((self.cache[layer][s][0], ks), 1)
                vs = torch.cat((self.cache[layer][s][1], vs), 1)
            grown.append((ks, vs))
            mask = torch.ones(qs.shape[1], ks.shape[1], dtype=torch.bool)
            mask = mask.tril(ks.shape[1] - qs.shape[1])
            o = F.scaled_dot_product_attention(
                qs[None], ks[None], vs[None], attn_mask=mask, enable_gqa=True
            )
            out.append(o[0].transpose(0, 1).flatten(1))
        return torch.cat(out), grown


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def prompts() -> list[TokenIds]:
    generator = torch.Generator().manual_seed(0)
    shape = (SEQUENCES, CACHED + FRESH + DECODES)
    return [tuple(row) for row in torch.randint(0, 49_000, shape, generator=generator).tolist()]


def _steps(low: int, high: int, trie: ChoiceTrie | None = None) -> StepPlan:
    """Rows low … high−1 of every sequence, masked greedy or a trie at the end."""
    spec = SampleSpec(SamplingParams(), high, ALLOWED)
    return StepPlan(
        0,
        tuple(
            SequenceStep(
                f"s{i}",
                tokens[low:high],
                low,
                tuple(range(i * BLOCKS, (i + 1) * BLOCKS)),
                sample=spec if trie is None else None,
                trie=trie,
            )
            for i, tokens in enumerate(prompts())
        ),
    )


def walk(runner: ModelRunner, clock: Clock) -> list[float]:
    """Seconds of the fresh rows' step, then of the decode steps together."""
    borders = (CACHED, *range(CACHED + FRESH, CACHED + FRESH + DECODES + 1))
    times = []
    for low, high in pairwise(borders):
        plan = _steps(low, high)
        began = clock()
        runner.step(plan)
        times.append(clock() - began)
    return [times[0], sum(times[1:])]


def score(runner: ModelRunner, clock: Clock) -> list[float]:
    firsts = [(100 + i,) for i in range(TRIE_ROWS // 3)]
    choices = [(*first, j, 7) for first in firsts for j in (1, 2)]
    trie = ChoiceTrie.build(choices)
    plan = _steps(CACHED, CACHED + FRESH, trie)
    began = clock()
    runner.step(plan)
    return [clock() - began]


def plain_walk(plain: Plain, clock: Clock) -> list[float]:
    tokens, held = prompts(), plain.cache
    began = clock()
    plain.step([t[CACHED : CACHED + FRESH] for t in tokens])
    between = clock()
    for i in range(CACHED + FRESH, CACHED + FRESH + DECODES):
        plain.step([t[i : i + 1] for t in tokens])
    ended = clock()
    plain.cache = held
    return [between - began, ended - between]


def flop(config: ModelConfig, rows: int, context: int, head_rows: int) -> float:
    """2 a multiply-add: products with weights, scores and mixes over the keys a row sees, head."""
    width = config.num_attention_heads * config.head_dim
    kv = config.num_key_value_heads * config.head_dim
    layer = config.hidden_size * (2 * width + 2 * kv + 3 * config.intermediate_size)
    pairs = rows * (context + (rows + 1) / 2)
    attention = 2 * width * pairs
    head = head_rows * config.hidden_size * config.vocab_size
    return 2.0 * (config.num_hidden_layers * (rows * layer + attention) + head)


def gemm_peak(clock: Clock) -> float:
    """FLOP/s of the best of large float32 products."""
    a, b, best = torch.randn(2048, 2048), torch.randn(2048, 2048), 0.0
    for _ in range(5):
        began = clock()
        torch.mm(a, b)
        best = max(best, 2 * 2048**3 / (clock() - began))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    args = parser.parse_args()
    clock = time.perf_counter if args.clock == "wall" else time.process_time
    folder = ensure(args.model)
    settings = EngineConfig(
        model=args.model, max_model_len=1024, num_gpu_blocks_override=SEQUENCES * BLOCKS
    )
    runner = ModelRunner.load(folder, settings)
    if args.threads:
        torch.set_num_threads(args.threads)
    config = read_config(folder)
    with torch.inference_mode():
        plain = Plain(str(folder), config)
        plain.step([t[:CACHED] for t in prompts()])
        runner.step(_steps(0, CACHED))
        found: dict[str, list[list[float]]] = {"plain": [], "walk": [], "score": []}
        peak = 0.0
        for _ in range(args.repeats):
            found["plain"].append(plain_walk(plain, clock))
            found["walk"].append(walk(runner, clock))
            found["score"].append(score(runner, clock))
            peak = max(peak, gemm_peak(clock))
    report(config, found, peak, args.clock)


def report(
    config: ModelConfig, found: dict[str, list[list[float]]], peak: float, clock: str
) -> None:
    """Medians by total; one line a way of running."""
    print(
        f"{platform.machine()} {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"{clock} clock, {config.num_parameters / 1e6:.0f}M parameters, largest product "
        f"{peak / 1e9:.0f} GFLOP/s"
    )
    fresh = flop(config, FRESH, CACHED, 0)
    later = DECODES * flop(config, 1, CACHED + FRESH, 0)
    trie = flop(config, TRIE_ROWS, CACHED + FRESH, TRIE_ROWS + 1)
    counted = {"plain": fresh + later, "walk": fresh + later, "score": fresh + trie}
    print(f"{'':8}{'moves/s':>9}{'fresh s':>9}{'decode s':>9}{'GFLOP/move':>12}{'of peak':>9}")
    for name, runs in found.items():
        run = sorted(runs, key=sum)[len(runs) // 2]
        rate = SEQUENCES / sum(run)
        decode = f"{run[1]:9.2f}" if len(run) > 1 else " " * 9
        print(
            f"{name:8}{rate:9.2f}{run[0]:9.2f}{decode}{counted[name] / 1e9:12.1f}"
            f"{rate * counted[name] / peak:9.0%}"
        )


if __name__ == "__main__":
    main()
