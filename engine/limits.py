"""What a request may ask for: refused here, at once and in one line, or it can run to its end.

A request that passes fits in the pool alone, so with all others preempted it always goes on.
"""

import math
from dataclasses import dataclass

from engine.choices import ChoiceSet
from engine.config import EngineConfig
from engine.types import (
    InvalidRequest,
    Request,
    RequestTooLarge,
    Runner,
    SamplingParams,
    num_blocks_for,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in tokens; `num_blocks` of `block_size` slots."""

    max_model_len: int
    num_blocks: int
    block_size: int
    vocab_size: int
    max_num_trie_tokens: int

    @classmethod
    def of(cls, runner: Runner, config: EngineConfig) -> "Limits":
        """Raises ValueError where settings and runner don't go together."""
        max_model_len = min(config.max_model_len or runner.max_model_len, runner.max_model_len)
        if not config.enable_chunked_prefill and config.max_num_batched_tokens < max_model_len:
            raise ValueError(
                f"max_num_batched_tokens: {config.max_num_batched_tokens} is less than the longest "
                f"prompt ({max_model_len}); raise it or set enable_chunked_prefill"
            )
        return cls(
            max_model_len,
            runner.num_blocks,
            runner.block_size,
            runner.vocab_size,
            config.max_num_trie_tokens,
        )

    def check(self, request: Request, *, has_tokenizer: bool) -> ChoiceSet | None:
        """The request's choices, ready to use. Raises InvalidRequest or RequestTooLarge."""
        self._check_tokens(request.prompt, "prompt")
        _check_sampling(request.sampling)
        if request.sampling.stop and not has_tokenizer:
            raise InvalidRequest("stop strings need a tokenizer; use stop_token_ids")
        if request.timeout_s is not None and not request.timeout_s > 0:
            raise InvalidRequest(f"timeout_s: {request.timeout_s} is not above 0")
        choices = self._choices(request)
        self._check_size(request, choices)
        return choices

    def _choices(self, request: Request) -> ChoiceSet | None:
        if request.choices is None:
            if request.score:
                raise InvalidRequest("score needs choices")
            return None
        try:
            choices = ChoiceSet.build(request.choices)
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        for choice in request.choices:
            self._check_tokens(choice, "choice")
        return choices

    def _check_tokens(self, tokens: tuple[int, ...], what: str) -> None:
        if not tokens:
            raise InvalidRequest(f"the {what} is empty; give at least one token")
        low, high = min(tokens), max(tokens)
        if low < 0 or high >= self.vocab_size:
            wrong = low if low < 0 else high
            raise InvalidRequest(f"{what}: token {wrong} is outside 0 … {self.vocab_size - 1}")

    def _check_size(self, request: Request, choices: ChoiceSet | None) -> None:
        num_prompt = len(request.prompt)
        num_new = 1 if choices is None else choices.max_length
        if num_prompt + num_new > self.max_model_len:
            raise RequestTooLarge(
                f"a prompt of {num_prompt} tokens and {num_new} more pass max_model_len "
                f"({self.max_model_len}); shorten the prompt"
            )
        num_trie = len(choices.trie.tokens) if choices is not None and request.score else 0
        if num_trie > self.max_num_trie_tokens:
            raise RequestTooLarge(
                f"the choices make a trie of {num_trie} rows, more than max_num_trie_tokens "
                f"({self.max_num_trie_tokens}); give fewer choices"
            )
        num_blocks = num_blocks_for(self.num_slots(request), self.block_size)
        if num_blocks > self.num_blocks:
            raise RequestTooLarge(
                f"the request may need {num_blocks} KV blocks, the pool has {self.num_blocks}; "
                "lower max_tokens or give kv_cache_memory_bytes more"
            )

    def num_slots(self, request: Request) -> int:
        """Pool slots it takes at its longest; an answer's last token and tries need none."""
        num_prompt = len(request.prompt)
        if request.score:
            return num_prompt
        if request.choices is not None:
            return num_prompt + max(len(choice) for choice in request.choices) - 1
        return min(num_prompt + request.sampling.max_tokens, self.max_model_len) - 1


def _check_sampling(params: SamplingParams) -> None:
    rules = {
        "temperature": math.isfinite(params.temperature) and params.temperature >= 0,
        "top_k": params.top_k >= 0,
        "top_p": 0 < params.top_p <= 1,
        "min_p": 0 <= params.min_p <= 1,
        "repetition_penalty": math.isfinite(params.repetition_penalty)
        and params.repetition_penalty > 0,
        "max_tokens": params.max_tokens >= 1,
        "logprobs": params.logprobs >= 0,
    }
    for name, holds in rules.items():
        if not holds:
            raise InvalidRequest(f"{name}: {getattr(params, name)} is out of range")
    if any(not stop for stop in params.stop):
        raise InvalidRequest("stop: an empty string stops everything")
