"""Side-by-side runs of docket's CPU engine against llama.cpp, built natively, on this machine.

Run by a person, not by CI: figures need a machine of known kind and as quiet as can be. Make the
environment once, outside the repository (a C++ compiler is needed; 7 minutes of one core):

    python3 -m venv ~/venv-peers && . ~/venv-peers/bin/activate
    pip install cmake ninja
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAVA_BUILD=OFF" CMAKE_BUILD_PARALLEL_LEVEL=1 \\
        pip install --no-binary llama-cpp-python llama-cpp-python

and install the models (`docket models` names them). Then, with its python:

    peers.py formats --model smollm2-135m                 BF16, Q8_0 and Q4_0 of the same weights
    peers.py measure --model smollm2-135m --forms file,Q4_0 --threads 1,2
                                                          llama.cpp alone: JSON lines, then a table
    peers.py versus --model smollm2-135m --a docket:int8 --b llama:file --threads 1
                                                          one pair, interleaved: a table
    peers.py versus --model smollm2-135m --a docket:bf16@2 --b docket:bf16@1
                                                          two threads against one
    peers.py acceptance --threads 1,2                     all pairs that docket is held to: a table
    peers.py acceptance --threads 2 --pairs 3,4           some of them, by their place in acceptance.py

llama.cpp is used at its best: for each piece of work it first tries flash attention on and off, repacked
weights on and off, its sizes of n_ubatch and, with several sequences, a unified cache on and off, and
keeps the fastest. docket is `cargo bench --bench engine -- --serve-lines ...`, or what --docket names;
peers/child.py has the protocol.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from peers import table
from peers.acceptance import DECISIONS, LENGTHS, PAIRS
from peers.child import Child, serve
from peers.formats import FORMATS, SHIPPED, default_folder, file_in, model_file
from peers.interleave import WARM_UPS, Peer, chosen, run_line, versus
from peers.llama import versions
from peers.machine import describe
from peers.work import PeerError, Work, parse_work

DOCKET = (
    "cargo bench --quiet --bench engine -- --serve-lines "
    "--model {model} --precision {precision} --threads {threads}"
)


def main() -> int:
    """Runs one of the commands."""
    options = _parser().parse_args()
    options.machine = describe()
    try:
        options.run(options)
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    formats = _command(commands, "formats", _formats, "make the other formats of a model")
    measure = _command(commands, "measure", _measure, "llama.cpp alone")
    pair = _command(commands, "versus", _versus, "one pair, interleaved")
    acceptance = _command(commands, "acceptance", _acceptance, "all pairs, interleaved")
    child = _command(commands, "child", _child, "a llama.cpp peer: JSON lines in, JSON lines out")

    child.add_argument("--model", type=Path, required=True)
    child.add_argument("--threads", type=int, default=1)
    for command in (formats, measure, pair):
        command.add_argument("--model", required=True, help="a GGUF file, or a name of `docket models`")
    for command in (formats, measure):
        forms = [SHIPPED, *FORMATS]
        command.add_argument("--forms", type=_list, default=forms, help=f"of {','.join(forms)}")
    for command in (measure, pair):
        command.add_argument("--work", type=_works, default=[*LENGTHS, *DECISIONS], help=parse_work.__doc__)
    for side in ("--a", "--b"):
        pair.add_argument(side, required=True, help="docket:PRECISION or llama:FORMAT, @THREADS if its own")
    for command in (measure, pair, acceptance):
        command.add_argument("--threads", type=_numbers, default=[1], help="such as 1,2")
        command.add_argument("--runs", type=int, default=10, help="runs or rounds of each")
    every = list(range(1, len(PAIRS) + 1))
    acceptance.add_argument("--pairs", type=_numbers, default=every, help="such as 3,4 (default: all)")
    for command in (pair, acceptance):
        command.add_argument("--docket", default=DOCKET, help="its command (default: %(default)s)")
        command.add_argument("--lines", type=Path, help="a file to append each run to, as JSON")
    for command in (formats, measure, pair, acceptance):
        command.add_argument("--cache", type=Path, default=default_folder(), help="folder of made formats")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], None],
    explained: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=explained)
    command.set_defaults(run=run)
    return command


def _list(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _works(text: str) -> list[Work]:
    try:
        return [parse_work(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _child(options: argparse.Namespace) -> None:
    serve(options.model, options.threads)


def _formats(options: argparse.Namespace) -> None:
    source = model_file(options.model)
    for form in options.forms:
        print(file_in(source, form, options.cache))


def _measure(options: argparse.Namespace) -> None:
    rows = []
    for form in options.forms:
        for threads in options.threads:
            peer = _llama(options.model, form, threads, options.cache)
            rows += _measure_one(peer, options.work, options.runs)
    _print_table(options, [*table.head(table.SINGLE_COLUMNS), *rows])


def _measure_one(peer: Peer, works: Sequence[Work], runs: int) -> list[str]:
    rows = []
    settings = chosen(peer, works)
    child = Child(f"{peer.name} {peer.form}", peer.command)
    try:
        for work in works:
            answers = [child.ask(work, settings[work]) for _ in range(WARM_UPS + runs)][WARM_UPS:]
            for number, answer in enumerate(answers):
                print(json.dumps(run_line(peer, work, number, answer)), flush=True)
            rows.append(table.single_row(peer, work, answers))
    finally:
        child.close()
    return rows


def _versus(options: argparse.Namespace) -> None:
    rows = []
    for threads in options.threads:
        a = _peer(options.a, options.model, threads, options)
        b = _peer(options.b, options.model, threads, options)
        rows += _pair(a, b, options.work, None, options)
    _print_table(options, [*table.head(table.PAIR_COLUMNS), *rows, "", table.explanation(options.runs)])


def _acceptance(options: argparse.Namespace) -> None:
    rows = []
    for pair in (PAIRS[place - 1] for place in options.pairs):
        for threads in options.threads:
            a = _docket(pair.model, pair.precision, threads, options.docket)
            b = _llama(pair.model, pair.form, threads, options.cache)
            rows += _pair(a, b, pair.works, pair.goal, options)
    _print_table(options, [*table.head(table.PAIR_COLUMNS), *rows, "", table.explanation(options.runs)])


def _pair(
    a: Peer, b: Peer, works: Sequence[Work], goal: float | None, options: argparse.Namespace
) -> list[str]:
    rows = []
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(options.lines.open("a")) if options.lines else None
        for series in versus(a, b, works, options.runs, lines):
            rows.append(table.pair_row(series, goal))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _peer(side: str, model: str, threads: int, options: argparse.Namespace) -> Peer:
    name, _, form = side.partition(":")
    form, _, own = form.partition("@")
    threads = int(own) if own.isdecimal() else threads
    if name == "docket" and form:
        return _docket(model, form, threads, options.docket)
    if name == "llama" and form:
        return _llama(model, form, threads, options.cache)
    raise PeerError(f"{side!r} is neither docket:PRECISION nor llama:FORMAT")


def _docket(model: str, precision: str, threads: int, command: str) -> Peer:
    words = shlex.split(command)
    values = {"{model}": model_file(model), "{precision}": precision, "{threads}": threads}
    for name, value in values.items():
        words = [word.replace(name, str(value)) for word in words]
    return Peer("docket", Path(model).stem, precision, threads, tuple(words))


def _llama(model: str, form: str, threads: int, cache: Path) -> Peer:
    path = file_in(model_file(model), form, cache)
    words = (sys.executable, __file__, "child", "--model", str(path), "--threads", str(threads))
    return Peer("llama.cpp", Path(model).stem, form, threads, words, chooses=True)


def _print_table(options: argparse.Namespace, lines: Sequence[str]) -> None:
    print("\n".join(["", *table.names(options.machine | versions()), "", *lines]))


if __name__ == "__main__":
    sys.exit(main())
