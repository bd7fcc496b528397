"""Which games may be counted together: one game, one rule set, equal terms, unchanged players.

Terms are what ends a game beside its rules: the cap and what is done at it, draw and resign
adjudication, the time control. Games under different terms are put in tables of their own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from agents.base import AgentInfo
from arena.sprt import Sprt
from arena.store import Store, StoreError, queries
from arena.store.queries import GameInfo
from arena.store.transaction import canonical_json

TERMS = ("max_plies", "at_cap", "draw", "resign", "referee", "tc", "timemargin_ms")


@dataclass(frozen=True, slots=True)
class PoolKey:
    game: str
    rules: str
    terms: str  # canonical JSON


@dataclass(slots=True)
class Pool:
    """Rated games that count together, and everybody who was to play in them."""

    key: PoolKey
    players: dict[str, AgentInfo] = field(default_factory=dict)
    slots: int = 0
    games: list[GameInfo] = field(default_factory=list)
    sections: set[tuple[int, int]] = field(default_factory=set)  # (run, section)
    sprt: Sprt | None = None  # of a section that is a sequential test
    order: tuple[str, ...] = ()  # of such a section: the player under test, the other


class UnequalPlayers(StoreError):
    """One name, different settings: such games are not counted together."""


class UnequalTerms(StoreError):
    """Runs of one game that are played by other rules or under other terms."""


def run_list(store: Store, run_ids: int | Sequence[int] | None) -> list[int]:
    """None: the latest run. Raises StoreError for a run that isn't there."""
    if run_ids is None:
        return [queries.latest_run(store).id]
    asked = [run_ids] if isinstance(run_ids, int) else list(dict.fromkeys(run_ids))
    return [queries.run(store, run_id).id for run_id in asked]


def pools(store: Store, run_ids: Sequence[int]) -> list[Pool]:
    """Every pool of those runs, by game and rules. Raises UnequalPlayers."""
    agents = _agents(store, run_ids)
    found: dict[PoolKey, Pool] = {}
    of_slot: dict[tuple[int, int], Pool] = {}
    for run_id in run_ids:
        config = queries.run(store, run_id).config
        terms = cache(partial(_terms, config))
        for slot in queries.slots(store, run_id):
            key = PoolKey(slot.game, slot.rules, terms(slot.section))
            pool = found.setdefault(key, Pool(key))
            pool.slots += 1
            if not pool.order and (test := _sprt(config, slot.section)):
                pool.sprt, pool.order = test, (slot.first, slot.second)
            pool.sections.add((run_id, slot.section))
            for name in (slot.first, slot.second):
                if name in agents:
                    pool.players[name] = agents[name]
            of_slot[run_id, slot.id] = pool
    for game in queries.rated_games(store, run_ids):
        of_slot[game.run_id, game.slot_id].games.append(game)
    return sorted(found.values(), key=lambda pool: (pool.key.game, pool.key.rules, pool.key.terms))


def check_equal_terms(found: Sequence[Pool]) -> None:
    """Raises UnequalTerms unless every run that plays a game plays it as the others do."""
    kinds: dict[str, dict[int, set[PoolKey]]] = defaultdict(lambda: defaultdict(set))
    for pool in found:
        for run_id, _ in pool.sections:
            kinds[pool.key.game][run_id].add(pool.key)
    for game, by_run in kinds.items():
        first, *others = sorted(by_run)
        for other in others:
            if by_run[other] != by_run[first]:
                mine, theirs = (_words(by_run[run_id]) for run_id in (first, other))
                raise UnequalTerms(
                    f"{game} of run {first} ({mine}) and of run {other} ({theirs}) are not counted "
                    "together: rate these runs apart"
                )


def _words(keys: set[PoolKey]) -> str:
    return "; ".join(sorted(f"{key.rules} {key.terms}" for key in keys))


def shown_terms(all_pools: Sequence[Pool]) -> dict[PoolKey, str]:
    """Terms in words, for tables that game and rules do not tell apart."""
    same: dict[tuple[str, str], list[PoolKey]] = defaultdict(list)
    for pool in all_pools:
        same[pool.key.game, pool.key.rules].append(pool.key)
    return {key: key.terms for keys in same.values() if len(keys) > 1 for key in keys}


def _section(config: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    sections = config.get("games")
    return sections[number] if isinstance(sections, list) and 0 <= number < len(sections) else {}


def _sprt(config: Mapping[str, Any], number: int) -> Sprt | None:
    test = _section(config, number).get("sprt")
    return Sprt(**test) if test else None


def _terms(config: Mapping[str, Any], number: int) -> str:
    section = _section(config, number)
    return canonical_json({name: section[name] for name in TERMS if section.get(name) is not None})


def _agents(store: Store, run_ids: Sequence[int]) -> dict[str, AgentInfo]:
    agents: dict[str, AgentInfo] = {}
    home: dict[str, int] = {}
    for run_id in run_ids:
        for agent in queries.players(store, run_id):
            known = agents.setdefault(agent.name, agent)
            home.setdefault(agent.name, run_id)
            if (known.kind, known.config) != (agent.kind, agent.config):
                raise UnequalPlayers(
                    f"{agent.name!r} has other settings in run {run_id} than in run "
                    f"{home[agent.name]}: rate these runs apart, or give it two names"
                )
    return agents
