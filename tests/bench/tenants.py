"""What tenants learn of each other on a running server, measured.

    tenants.py sidechannel                     2,000 trials of two tenants, 400 of one, on SmolLM2
    tenants.py sidechannel --trials 200        fewer
    tenants.py sidechannel --keep FOLDER       keeps each trial, and goes on where the last run ended
    tenants.py sidechannel --model qwen2.5-coder:1.5b --save result.json

It needs `cargo build --release` and the model (`docket pull smollm2:135m`), and nothing but Python's
standard library. It starts the server itself, on a free port, and stops it by its id.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from scheduling.bench import PATIENT
from scheduling.server import serving
from scheduling.wire import Broken
from tenants import sidechannel

ROOT = Path(__file__).resolve().parents[2]
KEYS = ("--api-key", "victim=sk-victim", "--api-key", "victim=sk-victim-2", "--api-key", "other=sk-other")
VICTIM, VICTIM_TOO, OTHER = ({"x-api-key": f"sk-{name}"} for name in ("victim", "victim-2", "other"))
ACROSS_MAX, WITHIN_MIN = 0.56, 0.95


def main() -> int:
    """Prints the table; 1 where a line does not hold."""
    options = _options()
    try:
        across, within = asyncio.run(_sidechannel(options))
    except Broken as fault:
        sys.exit(str(fault))
    print("| a state of | trials | AUC, held out (95 %) | of each half, by the other | by its own clock alone |")
    print("|---|--:|--:|--:|--:|")
    print(across.line("another tenant"))
    print(within.line("the same tenant"))
    if options.save:
        sidechannel.saved(options.save, {"across": across, "within": within})
    holds = across.high < ACROSS_MAX and within.area > WITHIN_MIN
    print(f"\nacross tenants below {ACROSS_MAX}, within one above {WITHIN_MIN}: {'yes' if holds else 'NO'}")
    return 0 if holds else 1


async def _sidechannel(options: argparse.Namespace) -> tuple[sidechannel.Result, sidechannel.Result]:
    trials, seed = options.trials, options.seed
    flags = [options.model, *KEYS, *PATIENT, *options.flag]
    with tempfile.TemporaryDirectory(prefix="docket-tenants-") as folder:
        async with serving(options.docket, Path(folder), flags, OTHER) as server:
            kept = [options.keep / f"{name}.jsonl" if options.keep else None for name in ("across", "within")]
            two = sidechannel.Trials(trials, seed, kept[0])
            across = await sidechannel.measured(server, VICTIM, OTHER, two)
            one = sidechannel.Trials(max(trials // 5, 40), seed + 1, kept[1])
            within = await sidechannel.measured(server, VICTIM, VICTIM_TOO, one)
    return across, within


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    docket = ROOT / "target" / "release" / "docket"
    parser.add_argument("line", choices=["sidechannel"], help="what to measure")
    parser.add_argument("--docket", type=Path, default=docket, help="default: %(default)s")
    parser.add_argument("--model", default="smollm2:135m", help="default: %(default)s")
    parser.add_argument("--trials", type=int, default=2_000, help="of two tenants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--save", type=Path, help="a file for the figures")
    parser.add_argument("--keep", type=Path, help="a folder for the trials, made before")
    parser.add_argument("--flag", action="append", default=[], help="one more flag of the server; repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
