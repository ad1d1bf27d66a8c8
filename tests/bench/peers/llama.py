"""llama.cpp behind the few calls that a run needs, through llama-cpp-python's low-level interface."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import llama_cpp

from .work import STATE, PeerError, Prefill, Warm, Work, token_ids

logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)

KEPT = 0
"""The sequence that holds the state; question 1 is sequence 1, and so on."""

CONTEXT_STEP = 256
"""llama.cpp pads its keys and values to this many positions."""

MISMATCH_MAX = 0.2
"""Most by which a question's scores may differ, packed on a copied state and read alone: the mean
difference, in standard deviations of the scores. Rounding in 4-bit and 8-bit kernels gives 0.02 to 0.1, a
question that does not see its state 0.4 and more."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a user of llama.cpp may choose: none changes an answer beyond rounding."""

    ubatch: int = 512
    flash: bool = True
    unified: bool = True
    repack: bool = True


@dataclasses.dataclass(frozen=True)
class Timing:
    """One run, by the clock and by the CPU time of all threads."""

    seconds: float
    cpu_seconds: float


class Model:
    """A loaded file; with `repack`, in the layout of the fastest kernels that llama.cpp has for it."""

    def __init__(self, path: Path, repack: bool = True) -> None:
        """Loads the file, on the CPU."""
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.use_extra_bufts = repack
        self.handle = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self.handle:
            raise PeerError(f"llama.cpp cannot load {path}")
        vocabulary = llama_cpp.llama_model_get_vocab(self.handle)
        self.scores = llama_cpp.llama_vocab_n_tokens(vocabulary)

    def describe(self) -> str:
        """Architecture, size and format, in llama.cpp's words."""
        text = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, text, len(text))
        return text.value.decode()

    def close(self) -> None:
        """Frees it; its contexts must be closed."""
        llama_cpp.llama_model_free(self.handle)


class Batch:
    """Texts to read in one call, one sequence each, with scores at the end of each."""

    def __init__(self, texts: Sequence[tuple[int, int, Sequence[int]]]) -> None:
        """Each text: its sequence, the position of its first token, its ids."""
        self.raw = llama_cpp.llama_batch_init(sum(len(ids) for _, _, ids in texts), 0, 1)
        self.ends = []
        row = 0
        for sequence, start, ids in texts:
            for offset, token in enumerate(ids):
                self.raw.token[row] = token
                self.raw.pos[row] = start + offset
                self.raw.n_seq_id[row] = 1
                self.raw.seq_id[row][0] = sequence
                self.raw.logits[row] = offset + 1 == len(ids)
                row += 1
            self.ends.append(row - 1)
        self.raw.n_tokens = row

    def close(self) -> None:
        """Frees it."""
        llama_cpp.llama_batch_free(self.raw)


class Context:
    """One context of a model: its keys and values and its work space."""

    def __init__(self, model: Model, settings: Settings, work: Work, threads: int) -> None:
        """As large as the work needs."""
        sequences = work.questions + 1 if isinstance(work, Warm) else 1
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = _positions(settings, work)
        params.n_batch = params.n_ctx
        params.n_ubatch = settings.ubatch
        params.n_seq_max = sequences
        params.n_outputs_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = int(settings.flash)
        params.kv_unified = settings.unified
        params.no_perf = True
        self.model = model
        self.handle = llama_cpp.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise PeerError(f"llama.cpp has no context for {settings} and {work}")
        self.memory = llama_cpp.llama_get_memory(self.handle)

    def decode(self, batch: Batch) -> None:
        """Reads the batch and waits for it."""
        failed = llama_cpp.llama_decode(self.handle, batch.raw)
        if failed:
            raise PeerError(f"llama_decode answers {failed}")
        llama_cpp.llama_synchronize(self.handle)

    def scores(self, row: int) -> Sequence[float]:
        """Scores of the whole vocabulary after a row of the last batch."""
        return llama_cpp.llama_get_logits_ith(self.handle, row)[: self.model.scores]

    def clear(self) -> None:
        """Forgets all sequences."""
        llama_cpp.llama_memory_clear(self.memory, False)

    def share(self, sequence: int) -> None:
        """Lets a sequence begin with the kept one."""
        llama_cpp.llama_memory_seq_cp(self.memory, KEPT, sequence, -1, -1)

    def drop(self, sequence: int) -> None:
        """Forgets a sequence."""
        llama_cpp.llama_memory_seq_rm(self.memory, sequence, -1, -1)

    def close(self) -> None:
        """Frees it."""
        llama_cpp.llama_free(self.handle)


def _positions(settings: Settings, work: Work) -> int:
    if isinstance(work, Prefill):
        return _padded(work.tokens)
    if settings.unified:
        return _padded(work.state + work.tokens)
    return (work.questions + 1) * _padded(work.state + work.question_tokens)


def _padded(positions: int) -> int:
    return -(-positions // CONTEXT_STEP) * CONTEXT_STEP


def _compare(expected: Sequence[float], got: Sequence[float], settings: Settings) -> None:
    differences = [abs(one - other) for one, other in zip(expected, got, strict=True)]
    mismatch = statistics.fmean(differences) / statistics.pstdev(expected)
    if not mismatch <= MISMATCH_MAX:
        raise PeerError(f"a packed question's scores are off by {mismatch:.2f}, with {settings}")


class Runner:
    """A piece of work made ready on one context: `run` does it once and times it."""

    def __init__(self, model: Model, settings: Settings, work: Work, threads: int) -> None:
        """For warm work, this reads the state, and checks that a question sees it."""
        self.settings = settings
        self.context = Context(model, settings, work, threads)
        self.sequences: list[int] = []
        state = token_ids(STATE, work.state if isinstance(work, Warm) else work.tokens)
        self.batch = Batch([(KEPT, 0, state)])
        if isinstance(work, Warm):
            self._keep(work, state)

    def _keep(self, work: Warm, state: list[int]) -> None:
        self.sequences = list(range(1, work.questions + 1))
        asked = [(each, token_ids(each, work.question_tokens)) for each in self.sequences]
        questions = Batch([(each, len(state), ids) for each, ids in asked])
        each, ids = asked[-1]
        alone = Batch([(each, 0, state + ids)])
        self.context.decode(alone)
        expected = self.context.scores(alone.ends[0])
        self.context.clear()
        self.context.decode(self.batch)
        self.batch.close()
        self.batch = questions
        self._read()
        got = self.context.scores(questions.ends[-1])
        self._forget()
        alone.close()
        _compare(expected, got, self.settings)

    def _read(self) -> None:
        for sequence in self.sequences:
            self.context.share(sequence)
        self.context.decode(self.batch)

    def _forget(self) -> None:
        for sequence in self.sequences:
            self.context.drop(sequence)

    def run(self) -> Timing:
        """One run; what it added to the context is removed after the clock has stopped."""
        if not self.sequences:
            self.context.clear()
        cpu, clock = time.process_time(), time.perf_counter()
        self._read()
        for end in self.batch.ends:
            llama_cpp.llama_get_logits_ith(self.context.handle, end)
        timing = Timing(time.perf_counter() - clock, time.process_time() - cpu)
        self._forget()
        return timing

    def close(self) -> None:
        """Frees it."""
        self.batch.close()
        self.context.close()


def versions() -> dict[str, str]:
    """What was built, and for which machine."""
    library = llama_cpp.llama_cpp._lib
    library.ggml_commit.restype = library.ggml_version.restype = ctypes.c_char_p
    return {
        "llama-cpp-python": llama_cpp.__version__,
        "ggml": library.ggml_version().decode(),
        "llama.cpp commit": library.ggml_commit().decode(),
        "llama.cpp's own words": llama_cpp.llama_print_system_info().decode().strip(),
    }
