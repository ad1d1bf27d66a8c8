"""Log-probabilities after prompts, from llama.cpp, through the shared library of the xllamacpp wheel.

Usage: python3 llama_logprobs.py MODEL.gguf PROMPTS.json OUT.json
PROMPTS.json: a list of prompts, each a list of token ids, or an object of "prompt" (token ids) and
"labels" (token ids). OUT.json: for each prompt the natural log-probabilities after its last token, of
the whole vocabulary or of its labels; always normalised over the whole vocabulary.
"""
import ctypes
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tokens"))
from llama_ids import Params, library  # noqa: E402

CONTEXT_TOKENS = 2048


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p), ("pos", ctypes.c_void_p), ("n_seq_id", ctypes.c_void_p),
        ("seq_id", ctypes.c_void_p), ("logits", ctypes.c_void_p)]


def open_model(lib, path):
    lib.llama_context_default_params.restype = Params
    lib.llama_init_from_model.argtypes = [ctypes.c_void_p, Params]
    lib.llama_init_from_model.restype = ctypes.c_void_p
    lib.llama_batch_get_one.argtypes = [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32]
    lib.llama_batch_get_one.restype = Batch
    lib.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    lib.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
    lib.llama_get_memory.argtypes = [ctypes.c_void_p]
    lib.llama_get_memory.restype = ctypes.c_void_p
    lib.llama_memory_clear.argtypes = [ctypes.c_void_p, ctypes.c_bool]
    lib.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
    assert model, "cannot load " + path
    params = lib.llama_context_default_params()
    # n_ctx, n_batch and n_ubatch are the first three fields.
    ctypes.memmove(params.bytes, (ctypes.c_uint32 * 3)(*[CONTEXT_TOKENS] * 3), 12)
    context = lib.llama_init_from_model(model, params)
    assert context
    lib.llama_set_n_threads.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
    lib.llama_set_n_threads(context, *[len(os.sched_getaffinity(0))] * 2)
    return model, context


def logprobs(lib, context, vocab_size, prompt):
    lib.llama_memory_clear(lib.llama_get_memory(context), True)
    ids = (ctypes.c_int32 * len(prompt))(*prompt)
    assert lib.llama_decode(context, lib.llama_batch_get_one(ids, len(prompt))) == 0
    logits = lib.llama_get_logits_ith(context, -1)[:vocab_size]
    top = max(logits)
    norm = top + math.log(sum(math.exp(each - top) for each in logits))
    return [each - norm for each in logits]


def read(lib, context, vocab_size, entry):
    if isinstance(entry, list):
        return logprobs(lib, context, vocab_size, entry)
    row = logprobs(lib, context, vocab_size, entry["prompt"])
    return [row[label] for label in entry["labels"]]


def main():
    model_path, prompts_path, out_path = sys.argv[1:]
    lib = library()
    model, context = open_model(lib, model_path)
    vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    with open(prompts_path, encoding="utf-8") as file:
        prompts = json.load(file)
    rows = [read(lib, context, vocab_size, entry) for entry in prompts]
    with open(out_path, "w", encoding="utf-8") as file:
        json.dump([[round(each, 6) for each in row] for row in rows], file)


if __name__ == "__main__":
    main()
