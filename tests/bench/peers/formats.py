"""The same weights in the formats that llama.cpp is fastest with, by its own quantiser.

What is made goes into a cache folder, never beside the model: a file named after the model, its size and
the format. They hold the shipped file's numbers, rounded once more: little changes in BF16 and Q8_0, more
in Q4_0. So their speed may be compared, not their answers.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import llama_cpp

from .llama import Model, Runner, Settings
from .work import PeerError, Prefill

FORMATS = {
    "BF16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
}

SHIPPED = "file"
"""Stands for the format of the model's own file."""


def default_folder() -> Path:
    """Where made files go if the caller names no folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "docket-peers"


def model_file(model: str) -> Path:
    """The file of a model: a path, or the name of a folder of `docket models`."""
    if Path(model).is_file():
        return Path(model).resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("DOCKET_HOME") or Path(cache) / "docket")
    found = sorted((home / "models" / model).glob("*.gguf"))
    if len(found) != 1:
        raise PeerError(f"{model} is no file, and {home / 'models' / model} has {len(found)} GGUF files")
    return found[0]


def file_in(source: Path, form: str, folder: Path) -> Path:
    """The model in a format; made if it is not there yet."""
    if form == SHIPPED:
        return source
    if form not in FORMATS:
        raise PeerError(f"{form!r} is no format, but {SHIPPED} and {', '.join(FORMATS)} are")
    made = folder / f"{source.stem}.{source.stat().st_size}.{form}.gguf"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = made.with_suffix(f".{os.getpid()}")
        _quantise(source, unfinished, FORMATS[form])
        _check(unfinished)
        unfinished.rename(made)
    return made


def _quantise(source: Path, target: Path, form: int) -> None:
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = form
    params.allow_requantize = True
    params.nthread = 1
    failed = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(target), params)
    if failed:
        target.unlink(missing_ok=True)
        raise PeerError(f"llama.cpp cannot make {target} from {source}: {failed}")


def _check(path: Path) -> None:
    """Loads the file and reads a few tokens."""
    model = Model(path)
    runner = Runner(model, Settings(), Prefill(16), 1)
    runner.run()
    scores = runner.context.scores(runner.batch.ends[0])
    runner.close()
    model.close()
    if not all(math.isfinite(score) for score in scores):
        raise PeerError(f"{path} gives scores that are no numbers")
