"""Writes what the PyPI package gguf and ggml itself make of blocks: the oracle of kernels/storage/storage_test.cc.

    python make_blocks.py LIBGGML     (needs numpy and gguf)

LIBGGML is a shared library with ggml's own quantisers, for Q4_K, which gguf does not write. From a checkout of
https://github.com/ggml-org/ggml (here: d99724f), compiled without contraction of products and sums:

    cc -O2 -DNDEBUG -ffp-contract=off -fPIC -shared -Iinclude -Isrc -Isrc/ggml-cpu -o libggml_quants.so src/ggml-quants.c -lm \\
       -Wl,--defsym=ggml_abort=0,--defsym=ggml_row_size=0,--defsym=ggml_type_name=0,--defsym=ggml_type_size=0

(the four functions are not called here).

Files, little endian:
  blocks.bin   u32 count of values; f32 values; then for q8_0, q4_0, q4_1, q5_0 in turn the encoded blocks and the f32
               values decoded from them
  q4_k.bin     u32 count of values; f32 values; the encoded blocks by ggml
  decode.bin   for q5_1, q2_k, q3_k, q4_k, q5_k, q6_k in turn: u32 count of blocks; random blocks, the first ones with scales
               that are zero, denormal, negative or the largest; the f32 values decoded from them
"""
import ctypes
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

HERE = Path(__file__).parent


def write_blocks():
    rng = np.random.default_rng(1)
    rows = [rng.standard_normal(32) * 10.0 ** e for e in range(-7, 5) for _ in range(8)]
    rows += [np.round(rng.standard_normal(32) * 4) / 8 for _ in range(32)]  # many ties
    rows += [np.zeros(32), np.full(32, 0.5), np.full(32, -3.0), np.arange(32) - 16.0, np.eye(32)[7], -np.eye(32)[31]]
    rows += [np.where(np.arange(32) % 2 == 0, 2.0, -2.0), np.where(np.arange(32) % 2 == 0, -2.0, 2.0)]  # largest twice
    values = np.array(rows, dtype=np.float32)
    with open(HERE / "blocks.bin", "wb") as out:
        out.write(struct.pack("<I", values.size))
        out.write(values.tobytes())
        for kind in (T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0):
            encoded = quantize(values, kind)
            out.write(encoded.tobytes())
            out.write(dequantize(encoded, kind).astype(np.float32).tobytes())


def write_q4_k(library):
    rng = np.random.default_rng(2)
    rows = [rng.standard_normal(256) * 10.0 ** e for e in range(-9, 6, 2) for _ in range(4)]
    rows += [rng.standard_t(2, 256) for _ in range(16)]                  # heavy tails, as some weights have
    rows += [np.abs(rng.standard_normal(256)) + 0.1 for _ in range(4)]   # all positive: the minimum becomes 0
    rows += [-np.abs(rng.standard_normal(256)) - 0.1 for _ in range(4)]
    rows += [np.round(rng.standard_normal(256) * 4) / 8 for _ in range(8)]  # many ties
    rows += [rng.standard_normal(256) * np.repeat(10.0 ** rng.integers(-6, 4, 8), 32) for _ in range(8)]  # unlike groups
    rows += [np.zeros(256), np.full(256, 0.5), np.full(256, -3.0), np.repeat(np.arange(8) - 4.0, 32)]  # no range
    rows += [np.arange(256) - 128.0, np.eye(256)[7], -np.eye(256)[255], np.where(np.arange(256) % 2 == 0, 2.0, -2.0)]
    rows += [rng.standard_normal(256) * 1e-40, rng.standard_normal(256) * 1e-44]  # denormal
    values = np.array(rows, dtype=np.float32)
    encoded = np.zeros(values.size // 256 * 144, dtype=np.uint8)
    quantise = ctypes.CDLL(library).quantize_row_q4_K_ref
    quantise.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    quantise.restype = None
    quantise(values.ctypes.data, encoded.ctypes.data, values.size)
    with open(HERE / "q4_k.bin", "wb") as out:
        out.write(struct.pack("<I", values.size))
        out.write(values.tobytes())
        out.write(encoded.tobytes())


def write_decode():
    rng = np.random.default_rng(3)
    # Where the f16 scales of a block are.
    halves = {T.Q5_1: [0, 2], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
    special = np.array([0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x3c00, 0xbc00], dtype=np.uint16)
    with open(HERE / "decode.bin", "wb") as out:
        for kind, places in halves.items():
            values, size = GGML_QUANT_SIZES[kind]
            count = 24 if values == 256 else 96
            blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
            for i in range(count):
                for n, at in enumerate(places):
                    if i < 16:
                        half = special[(i + 3 * n * (i // 8)) % 8]
                    else:
                        half = np.float16(rng.standard_normal() * 10.0 ** rng.integers(-3, 2)).view(np.uint16)
                    blocks[i, at:at + 2] = np.array([half], dtype=np.uint16).view(np.uint8)
            out.write(struct.pack("<I", count))
            out.write(blocks.tobytes())
            out.write(dequantize(blocks, kind).astype(np.float32).tobytes())


if __name__ == "__main__":
    write_blocks()
    write_q4_k(sys.argv[1])
    write_decode()
