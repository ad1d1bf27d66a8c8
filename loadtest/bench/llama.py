"""A llama-server for a while: the binary that --llama-server names, with its prompt cache on."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from scheduling.wire import Broken, request

from .setting import Setting, free_port, process

LOAD_SECONDS_MAX = 300
SILENT_MAX = 10


def model_file(model: str) -> Path:
    """The GGUF file of a model of `docket models`, or of a path."""
    if Path(model).is_file():
        return Path(model)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("DOCKET_HOME") or Path(cache) / "docket")
    folder = home / "models" / model.replace(":", "-")
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise Broken(f"{model} is no file, and its folder has {len(found)} GGUF files")
    return found[0]


@contextlib.asynccontextmanager
async def llama(setting: Setting, model: str, slots: int, context: int) -> AsyncIterator[str]:
    """Its address. `context` is of all slots together, as its flag has it; caching prompts is its default."""
    port, threads = free_port(), str(setting.threads)
    words = [str(setting.llama_server), "-m", str(model_file(model)), "--host", "127.0.0.1"]
    words += ["--port", str(port), "-np", str(slots), "-c", str(context), "-t", threads, "-tb", threads]
    async with process(setting, f"llama-{slots}", port, words) as url:
        await _loaded(port)
        yield url


async def _loaded(port: int) -> None:
    """It listens before its weights are there, and says 503 until then; who says nothing has died of it."""
    silent = 0
    for _ in range(LOAD_SECONDS_MAX * 5):
        reply = await request(port, "/health")
        if reply.status == 200:
            return
        silent = 0 if reply.status else silent + 1
        if silent > SILENT_MAX:
            raise Broken("llama-server is gone while it loads its model")
        await asyncio.sleep(0.2)
    raise Broken(f"llama-server has not loaded its model after {LOAD_SECONDS_MAX} s")
