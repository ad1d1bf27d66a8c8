"""Numbers and excerpts asked of made-up documents through the running binary, and how often they are right.

    extraction.py                                   the whole set, on the default model
    extraction.py --model smollm2:135m --limit 20   the first 20 documents
    extraction.py --save answers.jsonl              every question with its right answer and the one given
    extraction.py --dump set.jsonl                  writes the set and asks nothing

The set is drawn from a fixed seed: documents of eleven families in English, Russian and Chinese, with at
least 300 questions for numbers, 300 for excerpts, and 100 for what the document does not state. It needs
`cargo build --release` and the model (`docket pull qwen2.5-coder:1.5b`), and nothing but Python's standard
library. It starts the server itself, on a free port, and stops it by its id.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from extraction import english, others, scores
from extraction.documents import Ask, Document, document
from scheduling.bench import PATIENT
from scheduling.server import Server, serving
from scheduling.wire import Broken, request

ROOT = Path(__file__).resolve().parents[2]
SEED = 20_241_130
DOCUMENTS_OF_EACH = 12

Answered = tuple[Document, Ask, Mapping[str, Any]]


def main() -> int:
    """Asks the set and prints the table; an answer that breaks its form ends with an error."""
    options = _options()
    documents = drawn()[: options.limit]
    if options.dump:
        _write(options.dump, (_case(one, ask) for one in documents for ask in one.asks))
        return 0
    began = time.monotonic()
    try:
        answered = asyncio.run(asked(options, documents))
    except Broken as fault:
        sys.exit(str(fault))
    if options.save:
        _write(options.save, (_case(one, ask) | {"answer": answer} for one, ask, answer in answered))
    lines, total = scores.table(answered)
    seconds = time.monotonic() - began
    print(f"{len(answered)} questions on {len(documents)} documents, {options.model}, {seconds:.0f} s\n")
    print("\n".join(lines))
    return 1 if total.wrong_offsets else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    docket = ROOT / "target" / "release" / "docket"
    parser.add_argument("--docket", type=Path, default=docket, help="default: %(default)s")
    parser.add_argument("--model", default="qwen2.5-coder:1.5b", help="default: %(default)s")
    parser.add_argument("--limit", type=int, help="documents, of every family in turn (default: all)")
    parser.add_argument("--save", type=Path, help="a file for questions and answers, a line each")
    parser.add_argument("--dump", type=Path, help="a file for the set itself; no server is started")
    parser.add_argument("--flag", action="append", default=[], help="one more flag of the server; repeatable")
    return parser.parse_args()


def drawn() -> list[Document]:
    """The set, a document of every family in turn."""
    draw = random.Random(SEED)
    families = [*english.FAMILIES, *others.FAMILIES]
    return [document(family, draw) for _ in range(DOCUMENTS_OF_EACH) for family in families]


async def asked(options: argparse.Namespace, documents: Sequence[Document]) -> list[Answered]:
    """All answers, one request a document."""
    answered: list[Answered] = []
    with tempfile.TemporaryDirectory(prefix="docket-extraction-") as folder:
        flags = [*PATIENT, "--timeout", "600s", *options.flag]
        async with serving(options.docket, Path(folder), [options.model, *flags]) as server:
            for number, one in enumerate(documents):
                answered += await _answers(server, one)
                print(f"\r{number + 1} of {len(documents)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answered


async def _answers(server: Server, one: Document) -> list[Answered]:
    questions = {f"q{index}": ask.body() for index, ask in enumerate(one.asks)}
    reply = await request(server.port, "/v1/systemone", {"state": one.state, "questions": questions})
    if reply.status != 200:
        raise Broken(f"a decision ends with {reply.end}: {reply.body[:300]!r}")
    answers = reply.json()["answers"]
    return [(one, ask, answers[f"q{index}"]) for index, ask in enumerate(one.asks)]


def _case(one: Document, ask: Ask) -> dict[str, Any]:
    about = {"family": one.family, "language": one.language, "text": one.text}
    return {**about, "type": ask.kind, "instructions": ask.instructions, "gold": ask.gold}


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
