#!/usr/bin/env python3
"""A checkpoint is readable without Inlaid: with stock protobuf, from the .proto files alone, and json for the shards.

Needs python3-protobuf and protoc. INLAID_BUILD names the build folder (default: build), whose tests/checkpoint_sample
writes a fresh checkpoint and verifies one that was changed here.
"""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("INLAID_BUILD", os.path.join(ROOT, "build")))
SAMPLE = os.path.join(BUILD, "tests", "checkpoint_sample")
PROTO = os.path.join(ROOT, "sdk", "checkpoint", "proto")
GOLDEN = os.path.join(ROOT, "tests", "golden", "checkpoint")
STEP = 7  # of the golden checkpoints

# Names, types and shapes of the sample in the order in which its bytes are numbered (testing/sample.cc).
LORA = "model.layers.0.self_attn.q_proj.lora_"
TENSORS = [(LORA + side + ".weight", role, "F32", shape, 4)
           for role in ("ROLE_WEIGHT", "ROLE_MOMENT_1", "ROLE_MOMENT_2")
           for side, shape in (("A", [4, 6]), ("B", [6, 4]))]
TENSORS += [("model.embed_tokens.weight", "ROLE_WEIGHT", "BF16", [5, 3], 2),
            ("model.layers.0.mlp.down_proj.weight", "ROLE_WEIGHT", "Q4_1", [2, 64], 20 / 32),
            ("scale", "ROLE_WEIGHT", "F64", [], 8)]


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sample_bytes(step, number, count):
    return bytes((31 * step + 17 * number + 7 * i + i // 256) % 251 for i in range(count))


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class CheckpointProtoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        files = ["inlaid/checkpoint/v1/manifest.proto", "inlaid/checkpoint/v1/index.proto"]
        subprocess.run(["protoc", "--proto_path", PROTO, "--python_out", cls.folder] + files, check=True)
        # Regular packages, so that they come before another package named inlaid on the path.
        for package in ("inlaid", "inlaid/checkpoint", "inlaid/checkpoint/v1"):
            with open(os.path.join(cls.folder, package, "__init__.py"), "w"):
                pass
        sys.path.insert(0, cls.folder)
        from inlaid.checkpoint.v1 import index_pb2, manifest_pb2
        cls.index_pb2, cls.manifest_pb2 = index_pb2, manifest_pb2

    def write_sample(self, name):
        folder = os.path.join(self.folder, name)
        subprocess.run([SAMPLE, "write", folder, str(STEP)], check=True)
        return folder

    def check(self, folder):
        data = read(folder, "manifest.pb")
        manifest = self.manifest_pb2.Manifest.FromString(data)
        self.assertEqual(data[-5:], b"\x7d" + struct.pack("<I", manifest.crc32c))
        self.assertEqual(manifest.crc32c, crc32c(data[:-5]))
        self.assertEqual((manifest.format_version, manifest.min_reader_version), (1, 1))
        self.assertTrue(manifest.producer.startswith("inlaid "))
        self.assertEqual((manifest.step, manifest.cursor.epoch, manifest.cursor.index), (STEP, 0, 56))
        self.assertEqual(json.loads(manifest.config_json)["text"], "größer → 更大")
        self.assertEqual(json.loads(manifest.trainer_state.data)["tokens"], 7000)
        self.assertEqual(json.loads(manifest.adapters[0].config_json)["r"], 4)
        self.assertEqual(manifest.base.path, "/models/base")
        self.assertEqual(manifest.mesh.world, 1)
        self.assertEqual([file.name for file in manifest.extra_files], ["chat_template.jinja", "tokenizer.json"])
        for file in manifest.extra_files:
            content = read(folder, file.name)
            self.assertEqual((len(content), hashlib.sha256(content).hexdigest()), (file.bytes, file.sha256))
        self.assertEqual(len(manifest.writers), 1)
        writer = manifest.writers[0]
        content = read(folder, writer.index_file)
        self.assertEqual((len(content), hashlib.sha256(content).hexdigest()), (writer.index_bytes, writer.index_sha256))
        self.check_index(folder, self.index_pb2.Index.FromString(content))

    def check_index(self, folder, index):
        headers = []
        for shard in index.shards:
            content = read(folder, shard.file)
            length, = struct.unpack("<Q", content[:8])
            self.assertEqual((len(content), 8 + length), (shard.bytes, shard.header_bytes))
            self.assertEqual(crc32c(content[:8 + length]), shard.header_crc32c)
            headers.append((content, json.loads(content[8:8 + length])))
        role_name, type_name = self.index_pb2.Role.Name, self.index_pb2.DataType.Name
        records = {(record.name, role_name(record.role)): record for record in index.records}
        self.assertEqual(list(records), sorted(records, key=lambda key: (key[0], self.index_pb2.Role.Value(key[1]))))
        self.assertEqual(set(records), {(name, role) for name, role, _, _, _ in TENSORS})
        for number, (name, role, dtype, shape, width) in enumerate(TENSORS):
            record = records[name, role]
            count = 1
            for size in shape:
                count *= size
            self.assertEqual(type_name(record.encoding.dtype), "DATA_TYPE_" + dtype)
            self.assertEqual(list(record.shape), shape)
            self.assertEqual((list(record.box.offset), list(record.box.size)), ([0] * len(shape), shape))
            self.assertEqual((record.range.begin, record.range.end), (0, count))
            want = sample_bytes(STEP, number, int(count * width))
            content, header = headers[record.shard]
            self.assertEqual(content[record.offset:record.offset + record.bytes], want)
            self.assertEqual(record.crc32c, crc32c(want))
            begin, end = header[record.key]["data_offsets"]
            start = index.shards[record.shard].header_bytes
            self.assertEqual((start + begin, start + end), (record.offset, record.offset + record.bytes))
            if dtype != "Q4_1":
                self.assertEqual((header[record.key]["dtype"], header[record.key]["shape"]), (dtype, shape))

    def test_golden(self):
        versions = sorted(name for name in os.listdir(GOLDEN) if name.startswith("v"))
        self.assertIn("v0.1", versions)
        for version in versions:
            with self.subTest(version):
                self.check(os.path.join(GOLDEN, version))

    def test_fresh(self):
        self.check(self.write_sample("fresh"))

    def test_manifest_rewritten_here_is_accepted(self):
        folder = self.write_sample("rewritten")
        path = os.path.join(folder, "manifest.pb")
        manifest = self.manifest_pb2.Manifest.FromString(read(path))
        manifest.metadata.add(key="owner", value="data team")
        manifest.ClearField("crc32c")
        data = manifest.SerializeToString()
        with open(path, "wb") as file:
            file.write(data)
        damaged = subprocess.run([SAMPLE, "verify", folder], capture_output=True, text=True)
        self.assertEqual(damaged.returncode, 1)  # the recipe of manifest.proto is not optional
        with open(path, "wb") as file:
            file.write(data + b"\x7d" + struct.pack("<I", crc32c(data)))
        result = subprocess.run([SAMPLE, "verify", folder], capture_output=True, text=True, check=True)
        report, rendered = result.stdout.split("\n", 1)
        self.assertTrue(json.loads(report)["ok"])
        self.assertEqual(json.loads(rendered)["metadata"], {"owner": "data team"})


if __name__ == "__main__":
    unittest.main()
