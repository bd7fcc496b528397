"""Whatever a GGUF file is or became: its values, or one ModelError."""

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.gguf_file import GgufFile
from engine.model_config import ModelError


def small(path: Path) -> Path:
    """Every kind of value, an F32, a Q8_0 and an odd F16 tensor."""
    writer = gguf.GGUFWriter(path, "llama")
    for name, kind in (("u8", "UINT8"), ("i8", "INT8"), ("u16", "UINT16"), ("i16", "INT16"),
                       ("u32", "UINT32"), ("i32", "INT32"), ("u64", "UINT64"),
                       ("i64", "INT64")):  # fmt: skip
        writer.add_key_value(f"x.{name}", 7, gguf.GGUFValueType[kind])
    writer.add_float32("x.f32", 0.5)
    writer.add_float64("x.f64", 0.1)
    writer.add_bool("x.bool", True)
    writer.add_string("x.text", "장기 🙂")
    writer.add_array("x.numbers", [1, 2, 3])
    writer.add_array("x.texts", ["a", "", "b"])
    writer.add_tensor("a", np.arange(6, dtype=np.float32).reshape(2, 3))
    stored = gguf.GGMLQuantizationType.Q8_0
    data = gguf.quants.quantize(np.ones((2, 64), np.float32), stored)
    writer.add_tensor("b", data, raw_dtype=stored)
    writer.add_tensor("c", np.ones((3, 5), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_values_and_tensors_are_those_that_were_written(tmp_path: Path) -> None:
    file = GgufFile(small(tmp_path / "m.gguf"))
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    theirs = {name: field.contents() for name, field in reader.fields.items()}
    assert file.fields == {k: v for k, v in theirs.items() if not k.startswith("GGUF.")}
    assert file.fields["x.text"] == "장기 🙂"
    assert [*file.tensors] == ["a", "b", "c"]
    assert file.tensors["b"].shape == (2, 64)
    assert file.tensors["b"].num_bytes == 2 * 2 * 34
    assert file.data(file.tensors["a"]).view("<f4").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file.data(file.tensors["c"]).view("<f2").tolist() == [[1] * 5] * 3


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_damage_crashes_it(tmp_path: Path, data: st.DataObject) -> None:
    """Cut short, bytes changed, lengths of nonsense."""
    whole = bytearray(small(tmp_path / "whole.gguf").read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(8, len(whole) - 9))
        patch = data.draw(
            st.sampled_from([b"\xff" * 8, b"\0" * 8, struct.pack("<Q", 1 << 40), b"\t", b"\x08"])
        )
        whole[at : at + len(patch)] = patch
    file = tmp_path / "m.gguf"
    file.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    message = ""
    try:
        read = GgufFile(file)
        for tensor in read.tensors.values():
            assert read.data(tensor).nbytes == tensor.num_bytes
    except ModelError as error:
        message = str(error)
    assert "\n" not in message
    assert not message or "m.gguf" in message


@pytest.mark.parametrize("keep", [0, 3, 7, 20, 60, 200, -40])
def test_a_file_cut_short(tmp_path: Path, keep: int) -> None:
    file = small(tmp_path / "m.gguf")
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"m\.gguf is (truncated or damaged|no GGUF|GGUF ver)"):
        GgufFile(file)


@pytest.mark.parametrize("version", [0, 1, 4, 3 << 24])
def test_another_version(tmp_path: Path, version: int) -> None:
    """The last is a big-endian file's version 3."""
    file = small(tmp_path / "m.gguf")
    data = bytearray(file.read_bytes())
    data[4:8] = version.to_bytes(4, "little")
    file.write_bytes(data)
    words = f"is GGUF version {version}; versions 2 and 3 can be read"
    with pytest.raises(ModelError, match=words):
        GgufFile(file)


def test_a_type_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    stored = gguf.GGMLQuantizationType.IQ4_NL
    writer.add_tensor("blk.0.ffn_up.weight", np.zeros((2, 18), np.uint8), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_up\.weight is stored as IQ4_NL"):
        GgufFile(tmp_path / "m.gguf")


def test_a_part_of_a_split_file_is_named(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m-00001-of-00003.gguf", "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"one of 3 parts; join them with `llama-gguf-split"):
        GgufFile(tmp_path / "m-00001-of-00003.gguf")
