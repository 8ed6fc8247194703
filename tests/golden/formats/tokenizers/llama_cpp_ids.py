"""Ids that llama.cpp itself gives: reads {name: {"gguf": path, "texts": [...]}} from stdin, writes {name: [ids or null]}.

Needs PyPI xllamacpp, whose shared object carries llama.cpp's C API. Special tokens written in a text become their ids; nothing is
put in front or behind. A file that llama.cpp refuses gives null.
"""
import ctypes
import glob
import json
import os
import sys

import xllamacpp

VOCAB_ONLY = 72  # byte of llama_model_params: "only load the vocabulary, no weights" (llama.cpp of 2026-10)


class Params(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 256)]  # more than the structure has: it is passed in memory


lib = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "*.so"))[0])
lib.llama_model_default_params.restype = Params
lib.llama_model_load_from_file.restype = ctypes.c_void_p
lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
lib.llama_model_get_vocab.restype = ctypes.c_void_p
lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32),
                               ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]
quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, user: None)
lib.llama_log_set(quiet, None)
lib.llama_backend_init()


def encode(vocab, text):
    data = text.encode("utf-8")
    room = (ctypes.c_int32 * (len(data) + 64))()
    count = lib.llama_tokenize(vocab, data, len(data), room, len(room), False, True)
    return list(room[:count]) if count >= 0 else None


def main():
    out = {}
    for name, job in json.load(sys.stdin).items():
        params = lib.llama_model_default_params()
        params.bytes[VOCAB_ONLY] = 1
        model = lib.llama_model_load_from_file(job["gguf"].encode(), params)
        vocab = lib.llama_model_get_vocab(model) if model else None
        out[name] = [encode(vocab, text) if vocab else None for text in job["texts"]]
    json.dump(out, sys.stdout)


main()
