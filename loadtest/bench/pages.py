"""The tables that other benches make: their commands, short and as docs/BENCHMARKS.md has them.

Each prints its own table, which is passed on as it is. To add one, add it here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import shutil
import subprocess

from scheduling.figure import must

from .result import Result
from .setting import ROOT, Setting

SECONDS_MAX = 8 * 3_600

Commands = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Page:
    """Benches that make one part of the page."""

    short: Commands
    full: Commands
    needs: str = ""
    """A Python module that the named python must have."""

    def commands(self, is_full: bool) -> Commands:
        """With placeholders in braces."""
        return self.full if is_full else self.short

    async def run(self, setting: Setting) -> Result:
        """Each command's output; one that fails is a broken promise, one that cannot start a note."""
        result = Result()
        if self.needs and not await _has(setting.peers_python, self.needs):
            python = setting.peers_python
            result.notes.append(f"Not measured: {python} has no {self.needs}; see tests/bench/peers.py.")
            return result
        for command in self.commands(setting.full):
            words = filled(command, setting)
            if shutil.which(words[0]) is None:
                result.notes.append(f"Not measured, no {words[0]} here: `{shlex.join(words)}`")
                continue
            code, output, errors = await _output(words)
            result.output += f"`{command}`\n\n{output.strip()}\n\n"
            if code != 0:
                last = " ".join(errors.split())[-300:]
                result.figures.append(must(f"`{command}`", f"exit {code}: {last}", "exit 0", met=False))
        return result


def filled(command: str, setting: Setting) -> list[str]:
    """The words of a command of this setting."""
    values = {
        "{python}": "python3",
        "{peers-python}": setting.peers_python,
        "{docket}": str(setting.docket),
        "{loadtest}": str(setting.loadtest),
        "{model}": setting.model,
        "{default}": setting.default_model,
    }
    words = shlex.split(command)
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    return words


async def _has(python: str, module: str) -> bool:
    command = [python, "-c", f"import {module}"]
    try:
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


async def _output(words: list[str]) -> tuple[int, str, str]:
    running = await asyncio.create_subprocess_exec(
        *words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(SECONDS_MAX):
            output, errors = await running.communicate()
    finally:
        if running.returncode is None:
            running.terminate()
            await running.wait()
    return running.returncode or 0, output.decode(), errors.decode()


SCHEDULING = "{python} tests/bench/scheduling.py all --docket {docket} --loadtest {loadtest} --model {model}"
DECISIO = "{python} tests/bench/decisio.py {line} --docket {docket}"
PEERS = "{peers-python} tests/bench/peers.py"
QUALITY = "cargo bench --bench quality --"
LAYOUTS = "keys-prefill,keys-short,keys-short-prefill,keys-brief"

KERNELS = Page(
    ("cargo bench --bench engine -- products --threads 1 --precision int8",),
    ("cargo bench --bench engine -- products --threads 1", "cargo bench --bench engine -- steps"),
)
ENGINES = Page(
    (f"{PEERS} acceptance --threads 1 --runs 2 --pairs 4,8",),
    (
        f"{PEERS} acceptance --threads 1,2 --runs 5",
        f"{PEERS} versus --model smollm2-135m --a docket:bf16@2 --b docket:bf16@1 --runs 6",
        f"{PEERS} versus --model smollm2-135m --a docket:int8@2 --b docket:int8@1 --runs 6",
    ),
    needs="llama_cpp",
)
POLICY = Page(("cargo bench -p actors -- policy",), ("cargo bench -p actors -- policy",))
PLANNING = Page(
    ("cargo bench -p actors -- plan", "cargo bench -p actors -- throughput"),
    ("cargo bench -p actors -- plan", "cargo bench -p actors -- throughput"),
)
SCHEDULING_LINES = Page((f"{SCHEDULING} --short",), (SCHEDULING,))
MEMORY = Page(
    ("cargo test --release --test binary memory_is_what_health_says -- --nocapture",),
    ("cargo test --release --test binary memory_is_what_health_says -- --nocapture",),
)
ANSWERS = Page(
    (f"{QUALITY} --model {{model}} --layouts keys --precision int8 --cases generated --limit 12",),
    (
        f"{QUALITY} --layouts keys",
        f"{QUALITY} --layouts keys --precision f32,int8",
        f"{QUALITY} --model {{model}} --layouts keys --precision f32,bf16,int8",
        f"{QUALITY} --layouts letters --precision int8 --limit 120",
        f"{QUALITY} --layouts keys,bare,headers --limit 60",
        f"{QUALITY} --layouts {LAYOUTS} --precision int8 --cases devset",
    ),
)
TOKENS = Page((f"{QUALITY} --layouts all --tokens",), (f"{QUALITY} --layouts all --tokens",))
DECISIO_LINES = Page(
    (DECISIO.replace("{line}", "short"),),
    (
        DECISIO.replace("{line}", "stages --model {model}"),
        DECISIO.replace("{line}", "tasks --model {default}"),
        DECISIO.replace("{line}", "health --model {default}"),
    ),
)
EXTRACTION = Page(
    ("{python} tests/bench/extraction.py --docket {docket} --model {model} --limit 10",),
    ("{python} tests/bench/extraction.py --docket {docket} --model {default}",),
)
TENANTS = Page(
    ("{python} tests/bench/tenants.py sidechannel --docket {docket} --model {model} --trials 60",),
    ("{python} tests/bench/tenants.py sidechannel --docket {docket} --model {model}",),
)
SLOW = Page(
    ("{python} tests/bench/slow.py all --docket {docket} --short",),
    ("{python} tests/bench/slow.py all --docket {docket}",),
)
GOLDEN = Page(
    ("cargo test --release --test golden real -- --nocapture",),
    ("cargo test --release --test golden real -- --nocapture",),
)
