"""log-softmax terms along the edges of tries, without keeping a vocabulary-wide row a node."""

from torch import Tensor

from kernels.linear import PackedWeight

from . import reference


def choice_logprobs(
    hidden: Tensor, head: PackedWeight, edge_rows: Tensor, edge_tokens: Tensor
) -> Tensor:
    """hidden [nodes, size], head [vocabulary, size] packed, edges as int64 [edges] each, ascending
    by row → float32 [edges]: log P(token | row) over the whole vocabulary, NaN where the row's
    logits are not finite. Raises ValueError where edges don't match."""
    if edge_rows.shape != edge_tokens.shape or edge_rows.dim() != 1:
        raise ValueError(
            f"choice_logprobs: {list(edge_rows.shape)} rows, {list(edge_tokens.shape)} tokens"
        )
    return reference.choice_logprobs(hidden, head, edge_rows, edge_tokens)
