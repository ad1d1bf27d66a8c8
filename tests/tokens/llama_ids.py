"""Expected token ids from llama.cpp, through the shared library of the xllamacpp wheel.

Usage: python3 llama_ids.py TEXTS.json VOCABULARY.gguf OUT.json
or:    python3 llama_ids.py TEXTS.json FOLDER_OF_TINY_VOCABULARIES OUT.json
(see README.md beside this file).
"""
import ctypes
import json
import os
import sys

import xllamacpp

# Offset of `vocab_only` in llama_model_params; the struct's own size is not needed, since a
# larger one is passed on the stack just as well.
VOCAB_ONLY = 72


class Params(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 256)]


def library():
    folder = os.path.dirname(xllamacpp.__file__)
    lib = ctypes.CDLL(os.path.join(folder, "xllamacpp.abi3.so"))
    lib.llama_model_default_params.restype = Params
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
    lib.llama_model_load_from_file.restype = ctypes.c_void_p
    lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    lib.llama_model_get_vocab.restype = ctypes.c_void_p
    lib.llama_tokenize.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
        ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]
    lib.llama_tokenize.restype = ctypes.c_int32
    return lib


def open_vocabulary(lib, path):
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    assert list(params.bytes[VOCAB_ONLY:VOCAB_ONLY + 3]) == [0, 0, 1], "another llama_model_params"
    params.bytes[VOCAB_ONLY] = 1
    model = lib.llama_model_load_from_file(path.encode(), params)
    assert model, "cannot load " + path
    return lib.llama_model_get_vocab(model)


def tokenize(lib, vocab, text):
    """Plain text: no BOS, control tokens not recognised."""
    raw = text.encode()
    room = len(raw) + 16
    ids = (ctypes.c_int32 * room)()
    count = lib.llama_tokenize(vocab, raw, len(raw), ids, room, False, False)
    assert count >= 0, text
    return list(ids[:count])


def encode_all(lib, path, texts):
    vocab = open_vocabulary(lib, path)
    return [tokenize(lib, vocab, text) for text in texts]


def rows(ids):
    lines = [json.dumps(each, separators=(",", ":")) for each in ids]
    return "[\n" + ",\n".join(lines) + "\n]"


def main():
    texts_path, source, out_path = sys.argv[1:]
    lib = library()
    with open(texts_path, encoding="utf-8") as file:
        texts = json.load(file)
    if os.path.isdir(source):
        parts = []
        for name in sorted(os.listdir(source)):
            key = name.removeprefix("tiny-").removesuffix(".gguf")
            ids = encode_all(lib, os.path.join(source, name), texts[:196:2])
            parts.append(json.dumps(key) + ": " + rows(ids))
        out = "{\n" + ",\n".join(parts) + "\n}\n"
    else:
        out = rows(encode_all(lib, source, texts)) + "\n"
    with open(out_path, "w", encoding="utf-8") as file:
        file.write(out)
    print(out_path)


if __name__ == "__main__":
    main()
