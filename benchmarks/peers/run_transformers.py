"""transformers in its own environment: `generate` on a padded batch, a ply of all games.

python run_transformers.py MODEL_DIR
"""

import sys
import time
from importlib.metadata import version
from typing import Any

from loop import Answer, Ask, Line, Run, games_of


def batch(model: Any, asks: list[Ask], end: int) -> list[Answer]:
    import torch

    longest = max(len(a.ids) for a in asks)
    ids = torch.tensor([[end] * (longest - len(a.ids)) + a.ids for a in asks])
    mask = torch.tensor([[0] * (longest - len(a.ids)) + [1] * len(a.ids) for a in asks])

    def allowed(i: int, so_far: Any) -> list[int]:
        done = so_far[longest:].tolist()
        following = [c[len(done)] for c in asks[i].choices if c[: len(done)] == done < c]
        return following or [end]

    with torch.inference_mode():
        found = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=8,
            do_sample=False,
            pad_token_id=end,
            eos_token_id=end,
            prefix_allowed_tokens_fn=allowed,
        )
    answers, fed = [], found.shape[1] - 1  # columns of the batch that ran
    for ask, row in zip(asks, found[:, longest:].tolist(), strict=True):
        tokens = row[: row.index(end)] if end in row else row
        text = ask.legal[ask.choices.index(tokens)] if tokens in ask.choices else ""
        answers.append(Answer(text, fed))
    return answers


def main(folder: str) -> None:
    line = Line()
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    end = model.generation_config.eos_token_id
    end = end[0] if isinstance(end, list) else end
    line.send({"ready": f"transformers {version('transformers')}"})
    for job in line.jobs():
        games, run, began = games_of(job), Run(), time.perf_counter()
        for ply in range(max(len(game) for game in games)):
            asks = [game[ply] for game in games if len(game) > ply]
            asked = time.perf_counter()
            answers = batch(model, asks, end)
            seconds = time.perf_counter() - asked
            for ask, answer in zip(asks, answers, strict=True):
                run.add(ask, answer, seconds)
        line.send(run.result(time.perf_counter() - began))


if __name__ == "__main__":
    main(sys.argv[1])
