"""The commented TOML file that `arena init` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.naming import name_players
from agents.spec import parse_spec
from games.registry import get_game

_HEAD = """\
# A tournament for `arena run`. Every key that is left out has the value shown after `#`.

[run]
name = {name}
seed = 1              # the same seed plays the same games
concurrency = 64      # games in flight at once; far above what a model's batch holds
db = "madang.db"      # a file, or a URL such as postgresql+psycopg://localhost/madang
# retries = 1         # times a game is played again that we, not a player, failed
"""

_GAME = """
[[games]]
game = {game}
rules = {rules}  # {rules_known}
format = "round_robin"  # double_round_robin, gauntlet, match, knockout, swiss, sprt
pairs = {pairs}             # two games each: same opening, colours swapped
max_plies = 200       # the arena's cap; leave it out to play by the rules alone
at_cap = {at_cap}   # what the cap means: cut_short (unrated), material, points, draw, referee
{starts}
# draw = {{ movenumber = 40, movecount = 8, score = 10 }}     # by the engines' own scores
# resign = {{ movecount = 3, score = 600, twosided = true }}
# referee = {{ path = "stockfish", nodes = 100000 }}  # with at_cap = "referee": it judges the cap
# tc = "10+0.1"       # clocks for engines; makes a run depend on the machine's speed
"""

_STARTS = {
    "chess": '# openings = "builtin"   # or a book: EPD, FEN lines or PGN, also packed',
    "janggi": '# setups = ["nbbn/nbbn"]   # Cho/Han, in turn; openings = "builtin": all 16',
}

_PLAYERS = """
# Players: kind = "random", "material", "uci" (path, nodes, …) or "llm" (model, mode, template, …).
"""

_ENGINE = """
# How the in-process engine runs models; an llm player may have an `engine` table of its own.
# [engine]
# max_num_seqs = 16
# max_num_batched_tokens = 512
# kv_cache_memory_bytes = 1000000000

# What the models share; above weights_bytes they play in waves.
# [memory]
# weights_bytes = 4000000000
# kv_cache_bytes = 2000000000
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """What `arena init` may ask. Players in the command line's short form."""

    games: tuple[str, ...] = ("chess", "janggi")
    players: tuple[str, ...] = ("random", "material", "smollm2-135m:constrained")
    pairs: int = 1


def render(answers: Answers) -> str:
    """The text of the file. Raises SpecError, ValueError for names that are not known."""
    parts = [_HEAD.format(name=_toml("my tournament"))]
    parts += [_game(name, answers.pairs) for name in answers.games]
    parts.append(_PLAYERS)
    for spec in name_players([parse_spec(text) for text in answers.players]):
        table: Mapping[str, Any] = spec.model_dump(exclude_defaults=True)
        lines = [f"{key} = {_toml(value)}" for key, value in table.items() if key != "kind"]
        parts.append("\n".join(["[[players]]", f"kind = {_toml(spec.kind)}", *lines, ""]) + "\n")
    parts.append(_ENGINE)
    return "".join(parts)


def _game(name: str, pairs: int) -> str:
    game = get_game(name)
    default = next(iter(game.rule_sets))
    return _GAME.format(
        game=_toml(name),
        rules=_toml(default),
        rules_known=", ".join(game.rule_sets),
        pairs=pairs,
        at_cap=_toml("material" if name == "chess" else "points"),
        starts=_STARTS.get(name, ""),
    )


def _toml(value: object) -> str:
    """A value in TOML; JSON's strings, numbers, booleans and arrays are TOML's too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
