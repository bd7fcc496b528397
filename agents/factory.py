"""Players from their specs: the only door by which the arena gets agents.

Importing this file imports no torch, no engine and no tokenizer; each kind of agent is imported
when the first of its kind is made. Agents on the same model and engine options share one engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .backend import Model
from .base import Agent, AgentError, ModelSwap, Telemetry
from .memory import MemoryOptions, ModelCost, engine_key, kv_shares
from .naming import name_players, short_name
from .spec import (
    AgentSpec,
    EndpointSpec,
    HumanSpec,
    LlmSpec,
    MaterialSpec,
    MqttSpec,
    RandomSpec,
    ScriptedSpec,
    UciSpec,
)

if TYPE_CHECKING:
    from .local import SharedMemory


class Agents(Mapping[str, Agent]):
    """The players of a run by name. Close it once, whatever happened."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        models: Sequence[Model] = (),
        memory: "SharedMemory | None" = None,
    ) -> None:
        self._agents = dict(agents)
        self._models = tuple(models)
        self._memory = memory

    def __getitem__(self, name: str) -> Agent:
        return self._agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def telemetry(self) -> tuple[Telemetry, ...]:
        """How each model's engine stands, also while it loads. Cheap; call it as often as drawn."""
        return tuple(model.telemetry() for model in self._models)

    def swaps(self) -> tuple[ModelSwap, ...]:
        """The exchanges of weights so far, where the models do not fit together. Cheap."""
        return self._memory.swaps() if self._memory is not None else ()

    def failure(self) -> AgentError | None:
        """Why a model that loads in the background cannot play; None: none has failed."""
        return next((model.failure for model in self._models if model.failure is not None), None)

    async def start(self) -> None:
        """Start every player, one after the other. Raises AgentError.

        An agent on a model waits until it is loaded; who wants others to play meanwhile starts
        each agent in a task of its own.
        """
        for agent in self._agents.values():
            await agent.start()

    async def close(self) -> None:
        """Close every player, then the models; one that fails to close keeps none from it."""
        if self._memory is not None:
            self._memory.close()
        errors: list[Exception] = []
        closables: list[Agent | Model] = [*self._agents.values(), *self._models]
        for closable in closables:
            try:
                await closable.close()
            except Exception as error:  # reported below, after everything is closed
                errors.append(error)
        if errors:
            raise ExceptionGroup("agents failed to close", errors)


def create_agents(
    specs: Sequence[AgentSpec], *, run_seed: int = 0, memory: MemoryOptions | None = None
) -> Agents:
    """Agents for the specs, named as `naming.name_players` names them.

    Nothing is loaded or started yet. Raises AgentError (something to install is missing) or
    SpecError (two players of one name, KV memory that cannot be split so).
    """
    named = name_players(specs)
    models = _Models(run_seed, memory or MemoryOptions(), named)
    agents = {spec.name: _create(spec, models) for spec in named}
    return Agents(agents, tuple(models.made.values()), models.memory)


def model_costs(specs: Sequence[AgentSpec]) -> tuple[ModelCost, ...]:
    """What each in-process model of these players (named) costs; nothing is loaded or fetched.

    Raises AgentError: a model is not here, or something to install is missing.
    """
    players: dict[str, list[LlmSpec]] = {}
    for spec in specs:
        if isinstance(spec, LlmSpec):
            players.setdefault(engine_key(spec), []).append(spec)
    if not players:
        return ()
    try:
        from .local import footprint
    except ImportError as error:
        raise AgentError(_missing(next(iter(players.values()))[0].name, error)) from None
    return tuple(
        ModelCost(
            short_name(alike[0].model),
            tuple(spec.name for spec in alike),
            footprint(alike[0].model),
        )
        for alike in players.values()
    )


def rehearsed(
    costs: Sequence[ModelCost], specs: Sequence[AgentSpec], num_games: int
) -> tuple[ModelCost, ...]:
    """The same with times: each model is loaded twice, alone. Blocks; raises AgentError."""
    from .local import rehearse

    found = []
    for cost in costs:
        spec = next(spec for spec in specs if spec.name == cost.players[0])
        assert isinstance(spec, LlmSpec)
        swap_s, move_s = rehearse(spec.model, spec.engine, num_games)
        found.append(replace(cost, swap_s=swap_s, move_s=move_s))
    return tuple(found)


class _Models:
    """The models of a run, each made when its first player is."""

    def __init__(self, run_seed: int, options: MemoryOptions, specs: Sequence[AgentSpec]) -> None:
        self.made: dict[str, Model] = {}
        self.memory: SharedMemory | None = None
        self._run_seed, self._options = run_seed, options
        self._shares = kv_shares(specs, options)

    def local(self, spec: LlmSpec) -> Model:
        from .local import LocalModel, SharedMemory

        if self.memory is None:
            self.memory = SharedMemory(self._options.weights_bytes)
        key = engine_key(spec)
        if key not in self.made:
            self.made[key] = LocalModel(
                spec.model,
                spec.engine,
                seed=self._run_seed,
                memory=self.memory,
                kv_bytes=self._shares.get(key),
            )
        return self.made[key]


def _create(spec: AgentSpec, models: _Models) -> Agent:
    match spec:
        case RandomSpec():
            from .random_move import RandomAgent

            return RandomAgent(spec)
        case MaterialSpec():
            from .material import MaterialAgent

            return MaterialAgent(spec)
        case UciSpec():
            from .uci import UciAgent

            return UciAgent(spec)
        case ScriptedSpec():
            from .scripted import ScriptedAgent

            return ScriptedAgent(spec)
        case LlmSpec():
            return _create_llm(spec, models)
        case HumanSpec():
            from .human import HumanAgent

            return HumanAgent(spec)
        case MqttSpec():
            return _create_mqtt(spec)
        case EndpointSpec():
            return _create_remote(spec, models)


def _create_llm(spec: LlmSpec, models: _Models) -> Agent:
    try:
        from .llm import LlmAgent

        model = models.local(spec)
    except ImportError as error:
        raise AgentError(_missing(spec.name, error)) from None
    return LlmAgent(spec, model)


def _missing(who: str, error: ImportError) -> str:
    package = error.name or "a package"
    return f"{who}: {package} is missing, which the engine needs: pip install 'madang[local]'"


def _create_remote(spec: EndpointSpec, models: _Models) -> Agent:
    try:
        from .remote import CONNECTION, RemoteModel
    except ImportError as error:
        raise AgentError(
            f"{spec.name}: {error.name or 'a package'} is missing, which endpoints need: "
            "pip install 'madang[endpoint]'"
        ) from None
    from .llm import LlmAgent

    key = spec.model_dump_json(include=set(CONNECTION))
    if key not in models.made:
        models.made[key] = RemoteModel(spec)
    return LlmAgent(spec, models.made[key])


def _create_mqtt(spec: MqttSpec) -> Agent:
    try:
        from .mqtt import MqttAgent
    except ImportError as error:
        raise AgentError(
            f"{spec.name}: {error.name or 'a package'} is missing, which MQTT needs: "
            "pip install 'madang[mqtt]'"
        ) from None
    return MqttAgent(spec)
