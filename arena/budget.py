"""What a sitting of a run may spend: tokens and money. Pure; told of every request, never looks."""

from collections.abc import Mapping

MILLION = 1_000_000


class Budget:
    """Counts what was spent. `prices`: player → (of a million prompt tokens, of a million answer
    tokens), in whatever currency `max_cost` is."""

    def __init__(
        self,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._prices = dict(prices or {})
        self.tokens = 0
        self.cost = 0.0

    def spend(self, player: str, prompt: int, answer: int) -> str | None:
        """Count a request; the limit that it used up, as the configuration writes it."""
        tokens, cost = self.tokens, self.cost
        self.tokens += prompt + answer
        of_prompt, of_answer = self._prices.get(player, (0.0, 0.0))
        self.cost += (prompt * of_prompt + answer * of_answer) / MILLION
        if self._max_tokens is not None and tokens < self._max_tokens <= self.tokens:
            return f"max_tokens = {self._max_tokens}"
        if self._max_cost is not None and cost < self._max_cost <= self.cost:
            return f"max_cost = {self._max_cost:g}"
        return None
