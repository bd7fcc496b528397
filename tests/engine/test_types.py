"""Small values and the settings."""

import pytest

from engine.config import EngineConfig
from engine.trie import ChoiceTrie
from engine.types import SequenceStep, StepPlan, common_prefix, num_blocks_for


def test_rows_are_counted_with_their_tries() -> None:
    trie = ChoiceTrie.build([(1, 2), (1, 3, 4)])
    steps = (SequenceStep("a", (1, 2, 3), 0, (0,)), SequenceStep("b", (9,), 4, (1, 2), trie=trie))
    assert [step.num_rows for step in steps] == [3, 3]
    assert StepPlan(1, steps).num_rows == 6


def test_helpers() -> None:
    assert [num_blocks_for(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert common_prefix((1, 2, 3), (1, 2, 4)) == 2
    assert common_prefix((1, 2), (1, 2, 4)) == 2
    assert common_prefix((), (1,)) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model: give a model"),
        ({"max_num_seqs": 0}, "max_num_seqs: 0 is below 1"),
        ({"block_size": -1}, "block_size: -1 is below 1"),
        ({"kv_cache_memory_bytes": 0}, "kv_cache_memory_bytes: 0 is below 1"),
        ({"max_num_queued_reqs": -1}, "max_num_queued_reqs: -1 is below 0"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization: 1.5 is not in"),
        ({"max_num_batched_tokens": 8}, "max_num_batched_tokens: 8 is less than max_num_seqs"),
        ({"dtype": "fp32"}, "dtype: 'fp32' is none of auto, float32"),
        ({"kv_cache_dtype": "int4"}, "kv_cache_dtype: 'int4' is none of"),
        ({"scheduling_policy": "random"}, "scheduling_policy: 'random' is none of fcfs, priority"),
        ({"batching": "dynamic"}, "batching: 'dynamic' is none of continuous, static, serial"),
        ({"max_batch": 3}, "unknown engine setting 'max_batch'; known: batching, block_size"),
    ],
)
def test_bad_settings_are_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as info:
        EngineConfig.from_dict({"model": "m", **settings})
    assert "\n" not in str(info.value)


def test_settings_by_name() -> None:
    config = EngineConfig.from_dict({"model": "m", "batching": "serial", "max_num_seqs": 9})
    assert (config.num_places, config.block_size, config.enable_prefix_caching) == (1, 16, True)
    assert EngineConfig(model="m", max_num_seqs=9).num_places == 9
