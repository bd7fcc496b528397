"""The gated MLP of one layer: gate and up in one product, then down, added to the residual."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.linear import PackedWeight, linear, pack
from kernels.silu_mul import silu_mul


@dataclass(frozen=True, slots=True)
class GatedMLP:
    """`activate` takes [rows, 2·inner], gate first, to [rows, inner]."""

    gate_up: PackedWeight
    down: PackedWeight
    activate: Callable[[Tensor], Tensor]

    @classmethod
    def load(
        cls,
        weights: Mapping[str, Tensor],
        layer: int,
        activate: Callable[[Tensor], Tensor] = silu_mul,
    ) -> "GatedMLP":
        prefix = f"model.layers.{layer}.mlp."
        gate, up = (weights[f"{prefix}{name}_proj.weight"].float() for name in ("gate", "up"))
        biases = [weights.get(f"{prefix}{name}_proj.bias") for name in ("gate", "up", "down")]
        gate_bias, up_bias, down_bias = (b if b is None else b.float() for b in biases)
        both = None if gate_bias is None or up_bias is None else torch.cat((gate_bias, up_bias))
        return cls(
            gate_up=pack(torch.cat((gate, up)), both),
            down=pack(weights[prefix + "down_proj.weight"].float(), down_bias),
            activate=activate,
        )

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Normed rows [rows, hidden] → MLP(x), with the residual added where it is given."""
        return linear(self.activate(linear(x, self.gate_up)), self.down, residual)
