"""The files of docs/deploy by their own tools, where these are on this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from scheduling.figure import Figure, must

from .setting import Setting

FOREIGN = ("inference.networking.k8s.io/", "gateway.networking.k8s.io/")
"""Kinds of extensions, of which kubernetes-validate has no schemas."""


async def run(setting: Setting) -> list[Figure]:
    """One row a file; a tool that is not there is told of."""
    deploy = setting.root / "docs" / "deploy"
    envoy = str(setting.envoy) if setting.envoy else None
    figures = [
        _checked("envoy.yaml", envoy, ["--mode", "validate", "-c", str(deploy / "envoy.yaml")]),
        _checked("haproxy.cfg", shutil.which("haproxy"), ["-c", "-f", str(deploy / "haproxy.cfg")]),
    ]
    manifests = sorted((deploy / "kubernetes").glob("*.yaml"))
    own = [path for path in manifests if not _is_foreign(path)]
    validate = _tool(setting, "kubernetes-validate")
    figures += [_checked(f"kubernetes/{path.name}", validate, ["--strict", str(path)]) for path in own]
    return figures


def _checked(name: str, tool: str | None, words: Sequence[str]) -> Figure:
    if tool is None:
        return Figure(name, "not checked: its tool is not here")
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no words"]
    return must(name, "valid" if done.returncode == 0 else last[0][:200], "valid", done.returncode == 0)


def _is_foreign(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(f"apiVersion: {group}" in text for group in FOREIGN)


def _tool(setting: Setting, name: str) -> str | None:
    return shutil.which(name, path=str(setting.tools)) if setting.tools else shutil.which(name)
