"""Names of the machine, the code and the moment: without them a figure means nothing."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16")
"""Flags of /proc/cpuinfo that decide which kernels run; and all that start with `amx`."""


def describe() -> dict[str, str]:
    """What a reader needs to judge the figures."""
    return {
        "CPU": _processor(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "docket commit": _commit(),
        "load before (1, 5, 15 minutes)": ", ".join(f"{load:.1f}" for load in os.getloadavg()),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()}, {os.cpu_count()} CPUs"
    pairs = (line.partition(":") for line in lines)
    values = {name.strip(): value.strip() for name, _, value in pairs}
    name = values.get("model name", platform.machine())
    model = f"family {values.get('cpu family', '?')} model {values.get('model', '?')}"
    flags = values.get("flags", "").split()
    known = [flag for flag in flags if flag in FLAGS or flag.startswith("amx")]
    return f"{name} ({model}), {os.cpu_count()} CPUs, {values.get('cache size', '?')}: {' '.join(known)}"


def _commit() -> str:
    folder = Path(__file__).parent
    try:
        head = _git(folder, "rev-parse", "--short", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed else head


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
