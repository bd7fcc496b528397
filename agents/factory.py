"""Players from their specs: the only door by which the arena gets agents.

Importing this file imports no torch, no engine and no tokenizer; each kind of agent is imported
when the first of its kind is made. Agents on the same model and engine options share one engine.
"""

from collections.abc import Iterator, Mapping, Sequence

from .backend import Model
from .base import Agent, AgentError, Telemetry
from .naming import name_players
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


class Agents(Mapping[str, Agent]):
    """The players of a run by name. Close it once, whatever happened."""

    def __init__(self, agents: Mapping[str, Agent], models: Sequence[Model] = ()) -> None:
        self._agents = dict(agents)
        self._models = tuple(models)

    def __getitem__(self, name: str) -> Agent:
        return self._agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def telemetry(self) -> tuple[Telemetry, ...]:
        """How each model's engine stands, also while it loads. Cheap; call it as often as drawn."""
        return tuple(model.telemetry() for model in self._models)

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
        errors: list[Exception] = []
        closables: list[Agent | Model] = [*self._agents.values(), *self._models]
        for closable in closables:
            try:
                await closable.close()
            except Exception as error:  # reported below, after everything is closed
                errors.append(error)
        if errors:
            raise ExceptionGroup("agents failed to close", errors)


def create_agents(specs: Sequence[AgentSpec], *, run_seed: int = 0) -> Agents:
    """Agents for the specs, named as `naming.name_players` names them.

    Nothing is loaded or started yet. Raises AgentError (something to install is missing) or
    SpecError (two players of one name).
    """
    models: dict[str, Model] = {}
    agents: dict[str, Agent] = {}
    for spec in name_players(specs):
        agents[spec.name] = _create(spec, models, run_seed)
    return Agents(agents, tuple(models.values()))


def _create(spec: AgentSpec, models: dict[str, Model], run_seed: int) -> Agent:
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
            return _create_llm(spec, models, run_seed)
        case HumanSpec():
            from .human import HumanAgent

            return HumanAgent(spec)
        case MqttSpec():
            return _create_mqtt(spec)
        case EndpointSpec():
            return _create_remote(spec, models)


def _create_llm(spec: LlmSpec, models: dict[str, Model], run_seed: int) -> Agent:
    try:
        from .llm import LlmAgent
        from .local import LocalModel
    except ImportError as error:
        raise AgentError(
            f"{spec.name}: {error.name or 'a package'} is missing, which the engine needs: "
            "pip install 'madang[local]'"
        ) from None
    key = f"{spec.model}\x1f{spec.engine.model_dump_json()}"
    if key not in models:
        models[key] = LocalModel(spec.model, spec.engine, seed=run_seed)
    return LlmAgent(spec, models[key])


def _create_remote(spec: EndpointSpec, models: dict[str, Model]) -> Agent:
    try:
        from .remote import CONNECTION, RemoteModel
    except ImportError as error:
        raise AgentError(
            f"{spec.name}: {error.name or 'a package'} is missing, which endpoints need: "
            "pip install 'madang[endpoint]'"
        ) from None
    from .llm import LlmAgent

    key = spec.model_dump_json(include=set(CONNECTION))
    if key not in models:
        models[key] = RemoteModel(spec)
    return LlmAgent(spec, models[key])


def _create_mqtt(spec: MqttSpec) -> Agent:
    try:
        from .mqtt import MqttAgent
    except ImportError as error:
        raise AgentError(
            f"{spec.name}: {error.name or 'a package'} is missing, which MQTT needs: "
            "pip install 'madang[mqtt]'"
        ) from None
    return MqttAgent(spec)
