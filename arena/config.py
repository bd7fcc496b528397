"""TOML → frozen models. An unknown key is an error that suggests the nearest one.

    [run]        name, seed, concurrency, db, retries
    [[games]]    one table a tournament section: game, rules, format, pairs, openings, caps
    [engine]     defaults of every llm player's own `engine` table (vLLM's names)
    [memory]     what all in-process models share: weights_bytes, kv_cache_bytes
    [[players]]  who plays: `agents.spec`

`load_config` raises ConfigError with one line that names the file, the key and the fix. What it
returns is resolved: names are filled in, and `resolved` of it is what the store keeps with the run.
"""

import dataclasses
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agents.memory import MemoryOptions, kv_shares
from agents.naming import name_players
from agents.spec import AgentSpec, EngineOptions, SpecError, load_spec, nearest
from arena.adjudicate import AtCap, DrawRule, ResignRule
from arena.clock import parse_tc
from arena.openings import BUILTIN
from arena.sprt import Sprt
from games.registry import GAMES, get_game

Format = Literal[
    "round_robin", "double_round_robin", "gauntlet", "match", "knockout", "swiss", "sprt"
]


Price = Annotated[float, Field(ge=0)]


class ConfigError(ValueError):
    """A configuration that cannot be run; one line that names the thing and the fix."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunConfig(_Frozen):
    """What holds for the whole run."""

    name: str = Field(default="tournament", min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=2**63)
    concurrency: int = Field(default=64, ge=1, le=10_000)  # games in flight
    db: str = Field(default="madang.db", min_length=1)  # a file, or a URL of SQLAlchemy
    retries: int = Field(default=1, ge=0, le=20)  # times a game with no result is played again
    max_hours: float | None = Field(default=None, gt=0)  # then it stops, resumable; of one sitting
    max_tokens: int | None = Field(default=None, ge=1)  # prompt and answer, of one sitting
    max_cost: float | None = Field(default=None, gt=0)  # by `prices`, of one sitting
    prices: dict[str, tuple[Price, Price]] = Field(default_factory=dict)  # of a million tokens

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        return check_name(name)


class OpeningsConfig(_Frozen):
    """Where pairs start. `order` random draws from the run's seed."""

    file: str = Field(min_length=1)
    order: Literal["sequential", "random"] = "sequential"
    plies: int | None = Field(default=None, ge=0)  # of each PGN game; None: all
    start: int = Field(default=1, ge=1)  # the first opening used, from 1


class RefereeConfig(_Frozen):
    """A UCI engine that judges: at the cap, and by `draw` and `resign` in place of the players."""

    path: str = Field(min_length=1)  # a file, or a name such as stockfish
    nodes: int = Field(default=100_000, ge=1)  # of each position
    depth: int | None = Field(default=None, ge=1)  # in place of nodes
    options: dict[str, bool | int | str] = Field(default_factory=dict)
    processes: int = Field(default=1, ge=1, le=64)
    score: int = Field(default=200, ge=1)  # centipawns that win a game at the cap; less is a draw


class SectionConfig(_Frozen):
    """One tournament of one game under one set of rules."""

    name: str = ""  # shown; "" = the game's
    game: str
    rules: str = ""  # "" = the game's default
    format: Format = "round_robin"
    pairs: int = Field(default=1, ge=1)  # colour-swapped pairs a pairing (single games: not swap)
    swap: bool = True
    rounds: int | None = Field(default=None, ge=1)  # swiss only
    sprt: Sprt | None = None  # sprt only: is the first player better than the second?
    players: tuple[str, ...] = ()  # () = all; a gauntlet's first plays the rest
    openings: OpeningsConfig | None = None
    positions: tuple[str, ...] = ()  # FENs, one a pair in turn; () = drawn from openings
    setups: tuple[str, ...] = ()  # janggi: one a pair, in turn
    max_plies: int | None = Field(default=None, ge=1)  # the arena's cap, below the rules' own
    at_cap: AtCap = "cut_short"
    draw: DrawRule | None = None
    resign: ResignRule | None = None
    referee: RefereeConfig | None = None
    tc: str = "inf"  # [moves/]time[+increment]; timing-dependent
    timemargin_ms: int = Field(default=0, ge=0)
    token_s: float = Field(default=0.05, ge=0)  # under tc: seconds a token of a local model costs
    move_timeout_s: float = Field(default=900.0, gt=0)  # the watchdog: one request for a move

    @property
    def label(self) -> str:
        return self.name or self.game

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.game not in GAMES:
            raise ValueError(
                f"unknown game {self.game!r}{nearest(self.game, GAMES)}: there are "
                f"{', '.join(GAMES)}"
            )
        game = get_game(self.game)
        _known(self.rules, tuple(game.rule_sets), f"rules of {self.game}")
        for setup in self.setups:
            _known(setup, game.setups, f"set-up of {self.game}")
        parse_tc(self.tc)
        _contradictions(self)
        return self


class Config(_Frozen):
    """A whole run, resolved."""

    run: RunConfig = RunConfig()
    games: tuple[SectionConfig, ...] = Field(min_length=1)
    players: tuple[AgentSpec, ...] = Field(min_length=1)
    memory: MemoryOptions = MemoryOptions()

    def section_players(self, section: SectionConfig) -> tuple[str, ...]:
        return section.players or tuple(spec.name for spec in self.players)


def _known(value: str, known: Sequence[str], what: str) -> None:
    if value and value not in known:
        listed = ", ".join(known) if known else "none"
        raise ValueError(f"unknown {what}: {value!r}{nearest(value, known)}; known are {listed}")


def _contradictions(section: SectionConfig) -> None:
    if section.setups and (section.openings is not None or section.positions):
        raise ValueError("openings and setups both say where a game starts: keep one of them")
    if section.at_cap != "cut_short" and section.max_plies is None:
        raise ValueError(f"at_cap = {section.at_cap!r} needs max_plies")
    judged = section.draw is not None or section.resign is not None
    if section.at_cap == "referee" and section.referee is None:
        raise ValueError("at_cap = 'referee' needs referee = { path = \"stockfish\" }")
    if section.referee is not None and section.at_cap != "referee" and not judged:
        raise ValueError("the referee has nothing to judge: set at_cap = 'referee', draw or resign")
    if section.at_cap == "points" and section.game == "chess":
        raise ValueError("chess has no points: at_cap = 'material'")
    if section.rounds is None and section.format == "swiss":
        raise ValueError("format = 'swiss' needs rounds")
    if section.rounds is not None and section.format != "swiss":
        raise ValueError(f"rounds belongs to format = 'swiss', not {section.format!r}: use pairs")
    if (section.sprt is not None) != (section.format == "sprt"):
        raise ValueError("format = 'sprt' and sprt = { elo0 = …, elo1 = … } go together: set both")
    if section.sprt is not None and section.pairs != 1:
        raise ValueError("format = 'sprt' plays until it decides: use sprt.max_pairs, not pairs")
    if section.format in {"knockout", "swiss", "sprt"} and not section.swap:
        raise ValueError(f"format = {section.format!r} plays colour-swapped pairs: leave swap out")


def check_name(name: str) -> str:
    """The name in Unicode's NFC. Raises ValueError for one that cannot be shown on a line."""
    name = unicodedata.normalize("NFC", name).strip()
    bad = [char for char in name if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}]
    if bad:
        raise ValueError(f"name {name!r} holds the control character {bad[0]!r}: leave it out")
    return name


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """The resolved configuration of a TOML file; `overrides` replace keys of [run].

    Raises ConfigError.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `arena init {path}` writes one") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    try:
        return build_config(data, overrides=overrides, folder=path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def build_config(
    data: Mapping[str, Any],
    *,
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Config:
    """The resolved configuration of a parsed table. Opening files are taken from `folder`.

    Raises ConfigError without the file's name.
    """
    raw = dict(data)
    raw["run"] = {**_table(raw.get("run", {}), "run"), **(overrides or {})}
    players = _load_players(raw.pop("players", ()), raw.pop("engine", {}))
    raw["games"] = [_located(_table(t, "games"), folder) for t in _list(raw.get("games"), "games")]
    try:
        config = Config.model_validate({**raw, "players": players})
    except ValidationError as error:
        raise ConfigError(_explain(error)) from None
    _check_players(config)
    return config


def resolved(config: Config) -> dict[str, object]:
    """What the store keeps; `restore` of it gives the same configuration back."""
    return config.model_dump(mode="json")


def restore(stored: Mapping[str, Any]) -> Config:
    """The configuration of a stored run. Raises ConfigError where this version cannot read it."""
    return build_config(stored)


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(f"[[{key}]]: at least one table is needed")
    return list(value)


def _table(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} is not a table: write [{key}] or [[{key}]]")
    return dict(value)


def _located(section: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """`openings = "file"` is short for its table; a relative file lies beside the config.

    `builtin` is our own book; a file of that name is written `./builtin`.
    """
    openings = section.get("openings")
    if isinstance(openings, str):
        openings = {"file": openings}
    file = openings.get("file") if isinstance(openings, Mapping) else None
    if isinstance(openings, Mapping) and isinstance(file, str) and file != BUILTIN and folder:
        openings = {**openings, "file": str(folder / file)}
    return {**section, "openings": openings} if openings is not None else section


def _load_players(tables: object, engine: object) -> tuple[AgentSpec, ...]:
    """Players with the defaults of [engine] under their own and every name filled in."""
    defaults = _table(engine, "engine")
    unknown = [key for key in defaults if key not in EngineOptions.model_fields]
    if unknown:
        near = nearest(unknown[0], EngineOptions.model_fields)
        raise ConfigError(f"engine: unknown key {unknown[0]!r}{near}")
    specs: list[AgentSpec] = []
    for number, table in enumerate(_list(tables, "players"), 1):
        try:
            data = _table(table, "players")
            if data.get("kind") == "llm" and defaults:
                data["engine"] = {**defaults, **_table(data.get("engine", {}), "engine")}
            if isinstance(data.get("name"), str):
                data["name"] = check_name(data["name"])
            specs.append(load_spec(data))
        except ValueError as error:
            raise ConfigError(f"players[{number}]: {error}") from None
    try:
        return name_players(specs)
    except SpecError as error:
        raise ConfigError(str(error)) from None


def _check_players(config: Config) -> None:
    try:
        kv_shares(config.players, config.memory)
    except SpecError as error:
        raise ConfigError(str(error)) from None
    known = {spec.name for spec in config.players}
    for name in config.run.prices:
        if name not in known:
            raise ConfigError(
                f"run.prices: unknown player {name!r}{nearest(name, known)}; "
                f"players are {', '.join(sorted(known))}"
            )
    if config.run.max_cost is not None and not config.run.prices:
        raise ConfigError("run.max_cost needs prices: prices = { PLAYER = [prompt, answer] }")
    for number, section in enumerate(config.games, 1):
        where = f"games[{number}] ({section.label})"
        for name in section.players:
            if name not in known:
                raise ConfigError(
                    f"{where}: unknown player {name!r}{nearest(name, known)}; "
                    f"players are {', '.join(sorted(known))}"
                )
        names = config.section_players(section)
        if len(set(names)) != len(names):
            raise ConfigError(f"{where}: a player is named twice in players")
        if len(names) < 2:
            raise ConfigError(f"{where}: one player ({names[0]}) cannot play alone: add another")
        if section.format in {"match", "sprt"} and len(names) != 2:
            what = "a match" if section.format == "match" else "an SPRT"
            raise ConfigError(f"{where}: {what} has two players, not {len(names)}: name them")


_MODELS: dict[str, type[BaseModel]] = {
    "run": RunConfig,
    "games": SectionConfig,
    "memory": MemoryOptions,
}
_RULES = {"draw": DrawRule, "resign": ResignRule, "sprt": Sprt}
_TOP = ("run", "games", "players", "engine", "memory")


def _explain(error: ValidationError) -> str:
    """The first fault in one line, with the nearest known key where the key is unknown."""
    fault = error.errors()[0]
    loc = fault["loc"]
    path = ".".join(f"[{part + 1}]" if isinstance(part, int) else str(part) for part in loc)
    path = path.replace(".[", "[")
    if fault["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        known = _keys_at(loc)
        return f"unknown key {path!r}{nearest(str(loc[-1]), known)}: known are {', '.join(known)}"
    message = str(fault["msg"]).removeprefix("Value error, ")
    given = fault.get("input")
    got = f", not {given!r}" if isinstance(given, str | int | float | bool) else ""
    return f"{path}: {message}{'' if fault['type'] == 'value_error' else got}"


def _keys_at(loc: tuple[int | str, ...]) -> list[str]:
    names = [str(part) for part in loc if not isinstance(part, int)]
    if len(names) == 1:
        return list(_TOP)
    if names[1] == "openings":
        return list(OpeningsConfig.model_fields)
    if names[1] == "referee":
        return list(RefereeConfig.model_fields)
    if names[1] in _RULES:
        return [field.name for field in dataclasses.fields(_RULES[names[1]])]
    return list(_MODELS[names[0]].model_fields)
