"""The compute half of the engine: a plan in, tokens and log-probabilities out. CPU, float32.

Owns the weights and the block pool and knows nothing about requests. A step: copy blocks, lay the
plan out as one flat batch, run the decoder, hand the wanted rows to the sampler or to the trie
scorer. `deterministic` says that a row's bits depend on its own tokens alone; a few small passes at
the start check it on this machine.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.batch import Batch, build_batch
from engine.config import EngineConfig
from engine.footprint import fingerprint, give_back_memory
from engine.layers.attention import StepTensors
from engine.layers.kv_cache import KVCache
from engine.model_config import ModelError
from engine.models import Decoder, load_model
from engine.sampler import CORRUPTED, sample_allowed, sample_rows
from engine.selfcheck import is_bit_stable
from engine.spill import remove, spill
from engine.threads import use_cores
from engine.types import SampleSpec, SequenceOutput, StepOutput, StepPlan
from kernels.choice_logprobs import choice_logprobs
from kernels.linear import linear
from kernels.paged_attention import TILE, plan_attention, safe_key_lengths
from kernels.store_kv import plan_store

log = logging.getLogger(__name__)
DTYPES = ("auto", "float32")


class ModelRunner:
    """One model on one CPU. Not thread-safe: the engine's thread owns it."""

    def __init__(
        self, model: Decoder, cache: KVCache, config: EngineConfig, source: Path | None = None
    ) -> None:
        """`source`: what `reload` reads again."""
        self.model = model  # absent while its weights are away
        self.cache = cache
        self._source, self._config = source, config
        self._fingerprint = fingerprint(source) if source is not None else ()
        self._spill: Path | None = None  # its weights as floats, once they have left
        self._is_spilled = False
        self._model_config, self._max_model_len = model.config, model.max_model_len
        self._ropes = model.ropes  # kept, so that `reload` need not make them again
        self._block_size = config.block_size
        self.key_lengths = safe_key_lengths(model.config.head_dim)
        self.deterministic = config.deterministic and is_bit_stable(self)
        if config.deterministic and not self.deterministic:
            log.warning(
                "this machine's library changes a row's bits with its neighbours: results are "
                "not marked deterministic"
            )

    @classmethod
    def load(cls, model_dir: Path, config: EngineConfig) -> "ModelRunner":
        """Raises ModelError: the directory can't be used, or a setting can't be had here."""
        _check(config)
        use_cores()
        with torch.inference_mode():
            model = load_model(Path(model_dir), config.max_model_len)
            cache = KVCache.allocate(model.config, config, model.max_model_len)
            return cls(model, cache, config, Path(model_dir))

    @property
    def block_size(self) -> int:
        return self._block_size

    @property
    def num_blocks(self) -> int:
        return self.cache.num_blocks

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def vocab_size(self) -> int:
        return self._model_config.vocab_size

    def step(self, plan: StepPlan) -> StepOutput:
        began = time.perf_counter()
        with torch.inference_mode():
            self.cache.copy(plan.copies)
            outputs: tuple[SequenceOutput, ...] = ()
            if plan.sequences:
                batch = build_batch(plan, self._block_size)
                hidden = self.model.forward(self.tensors(batch), self.cache)
                outputs = self._outputs(plan, batch, hidden)
        return StepOutput(outputs, time.perf_counter() - began)

    def offload(self) -> None:
        """Free the weights' memory; block pool and rotary tables stay. On a CPU there is no other
        memory to move them to: `reload` maps the file again, most of it from the page cache. A
        GGUF's weights are written out as floats once, which can be mapped."""
        self._drop()
        if not self._is_spilled and self._source is not None:
            self._is_spilled = True
            self._spill = spill(self._source, self._model_config)
            give_back_memory()

    def reload(self) -> None:
        """Read the same weights again. Raises ModelError: they cannot be had, or are others."""
        assert self._source is not None, "a model that came from no file stays"
        if fingerprint(self._source) != self._fingerprint:
            raise ModelError(f"{self._source} has changed since it was loaded: start the run again")
        with torch.inference_mode():
            model = load_model(self._spill or self._source, self._config.max_model_len)
        self.model = model

    def close(self) -> None:
        """Let go of weights and pool."""
        self._drop()
        remove(self._spill)
        self.__dict__.pop("cache", None)
        self._ropes = {}

    def _drop(self) -> None:
        self.__dict__.pop("model", None)
        give_back_memory()

    def tensors(self, batch: Batch) -> StepTensors:
        """What the layers need, made once a step; rows are padded where attention reads past."""
        model = self.model.config
        plans = {
            kind: plan_attention(
                batch.rows,
                kv_heads=model.num_key_value_heads,
                block_size=self._block_size,
                key_lengths=self.key_lengths,
                window=model.sliding_window if kind == "sliding_attention" else None,
            )
            for kind in self.model.ropes
        }
        missing = max(plan.num_rows for plan in plans.values()) - batch.num_rows
        positions = torch.from_numpy(np.pad(batch.rows.positions, (0, missing)))
        return StepTensors(
            input_ids=torch.from_numpy(np.pad(batch.input_ids, (0, missing))),
            wanted=torch.from_numpy(batch.wanted),
            store=plan_store(batch.slots, model.num_key_value_heads, self._block_size),
            turns={kind: table[positions] for kind, table in self.model.ropes.items()},
            plans=plans,
        )

    def _outputs(self, plan: StepPlan, batch: Batch, hidden: Tensor) -> tuple[SequenceOutput, ...]:
        """hidden [wanted, size]: those of the head's three uses are looked up apart."""
        first = batch.wanted_start.tolist()
        full: dict[int, SampleSpec] = {}
        masked: dict[int, SampleSpec] = {}
        for i, step in enumerate(plan.sequences):
            if step.sample is not None:
                (masked if _is_masked(step.sample) else full)[i] = step.sample
        found = self._sample(hidden, full, first)
        found |= self._walk(hidden, masked, first)
        found |= self._score(plan, hidden, first)
        return tuple(found.get(i, SequenceOutput()) for i in range(len(plan.sequences)))

    def _sample(
        self, hidden: Tensor, specs: Mapping[int, SampleSpec], first: list[int]
    ) -> dict[int, SequenceOutput]:
        if not specs:
            return {}
        rows = hidden[[first[i] for i in specs]]
        outputs = sample_rows(linear(rows, self.model.head), list(specs.values()))
        return dict(zip(specs, outputs, strict=True))

    def _walk(
        self, hidden: Tensor, specs: Mapping[int, SampleSpec], first: list[int]
    ) -> dict[int, SequenceOutput]:
        """Masked rows meet only the head's rows of their allowed tokens."""
        outputs = {}
        for i, spec in specs.items():
            rows = self.model.head_rows[list(spec.allowed or ())]
            scores = (rows * hidden[first[i]]).sum(-1).double().numpy()
            outputs[i] = sample_allowed(scores, spec)
        return outputs

    def _score(self, plan: StepPlan, hidden: Tensor, first: list[int]) -> dict[int, SequenceOutput]:
        """Tries: each node's row and its children's tokens."""
        tries = {i: s.trie for i, s in enumerate(plan.sequences) if s.trie is not None}
        if not tries:
            return {}
        nodes = [range(first[i], first[i + 1]) for i in tries]
        base = np.cumsum([0, *map(len, nodes)])
        edges = [
            (int(start) + 1 + row, token, order)
            for start, trie in zip(base, tries.values(), strict=False)
            for order, (row, token) in enumerate(trie.edges)
        ]
        outputs: dict[int, SequenceOutput] = {}
        rows, tokens = (torch.tensor([edge[k] for edge in edges]) for k in (0, 1))
        ascending = torch.argsort(rows, stable=True)
        terms = torch.empty(len(edges))
        terms[ascending] = choice_logprobs(
            hidden[[row for span in nodes for row in span]],
            self.model.head,
            rows[ascending],
            tokens[ascending],
        )
        values = terms.tolist()
        at = 0
        for i, trie in tries.items():
            mine = tuple(values[at : at + len(trie.edges)])
            at += len(mine)
            is_finite = all(np.isfinite(mine))
            outputs[i] = SequenceOutput(edge_logprobs=mine) if is_finite else CORRUPTED
        return outputs


def _is_masked(spec: SampleSpec) -> bool:
    """Only the allowed tokens' logits matter."""
    return spec.allowed is not None and spec.params.logprobs == 0


def _check(config: EngineConfig) -> None:
    if config.device not in ("auto", "cpu"):
        raise ModelError(f"device {config.device!r} is not supported yet; use cpu")
    if config.dtype not in DTYPES:
        raise ModelError(
            f"dtype {config.dtype!r}: a CPU computes in float32 here, since 16-bit types are "
            "several times slower without their instructions; use auto"
        )
    if config.quantization is not None:
        raise ModelError(f"quantization {config.quantization!r} is not supported yet; leave it out")
    if TILE % config.block_size:
        raise ModelError(f"block_size: {config.block_size} does not divide {TILE}")
