"""Writes blocks.bin: f32 values and what the PyPI package gguf makes of them, the oracle of kernels/storage/storage_test.cc.

Layout, little endian: u32 count of values; f32 values; then for q8_0, q4_0, q4_1 in turn the encoded blocks and the f32
values decoded from them. Run with numpy and gguf installed:  python make_blocks.py
"""
import struct
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

rng = np.random.default_rng(1)
rows = [rng.standard_normal(32) * 10.0 ** e for e in range(-7, 5) for _ in range(8)]
rows += [np.round(rng.standard_normal(32) * 4) / 8 for _ in range(32)]  # many ties
rows += [np.zeros(32), np.full(32, 0.5), np.full(32, -3.0), np.arange(32) - 16.0, np.eye(32)[7], -np.eye(32)[31]]
rows += [np.where(np.arange(32) % 2 == 0, 2.0, -2.0), np.where(np.arange(32) % 2 == 0, -2.0, 2.0)]  # largest twice
values = np.array(rows, dtype=np.float32)

with open(Path(__file__).with_name("blocks.bin"), "wb") as out:
    out.write(struct.pack("<I", values.size))
    out.write(values.tobytes())
    for kind in (T.Q8_0, T.Q4_0, T.Q4_1):
        encoded = quantize(values, kind)
        out.write(encoded.tobytes())
        out.write(dequantize(encoded, kind).astype(np.float32).tobytes())
