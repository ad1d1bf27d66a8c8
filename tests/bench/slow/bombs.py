"""Bodies of some kilobytes that unpack to a gigabyte: refused, and how far memory grows meanwhile.

The zstd bomb is made of blocks that each repeat one byte (RFC 8878, section 3.1.1.2.2), which is as dense
as the format allows; the gzip bomb is what deflate can do at best, a thousandfold.
"""

from __future__ import annotations

import asyncio
import gzip
import struct

from scheduling.bench import Bench
from scheduling.figure import Figure, at_rest, must
from scheduling.server import Server
from scheduling.wire import HOST, Reply, ends, request

GIGABYTE = 1 << 30
ZSTD_BLOCK = 128 << 10
AT_ONCE = 64
"""Bombs at one time; four are unpacked at a time."""

BODY_LIMIT = 32 << 20
"""The default of `--body-limit`."""

PARSERS = 4
GROWTH_KIB_MAX = 2 * PARSERS * (BODY_LIMIT >> 10)
"""What four bodies at the limit take, twice: a buffer that grows has the old one beside it."""

LOOK_SECONDS = 0.005


async def run(bench: Bench) -> list[Figure]:
    """One bomb of each kind, then many at once."""
    made = {"zstd": zstd(GIGABYTE), "gzip": gzip.compress(bytes(GIGABYTE), 9)}
    rows = []
    async with bench.fake() as server:
        await asyncio.gather(*(request(server.port, "/health") for _ in range(AT_ONCE)))
        for encoding, bomb in made.items():
            for count in (1, AT_ONCE):
                rows += await thrown(server, encoding, bomb, count)
        left = await server.not_at_rest()
    return [*rows, at_rest(left)]


async def thrown(server: Server, encoding: str, bomb: bytes, count: int) -> list[Figure]:
    """So many of a kind at once."""
    before = server.private_kib()
    peak = before
    throwing = asyncio.gather(*(throw(server.port, encoding, bomb) for _ in range(count)))
    while not throwing.done():
        peak = max(peak, server.private_kib())
        await asyncio.sleep(LOOK_SECONDS)
    replies = await throwing
    slowest = max(reply.seconds for reply in replies)
    what = f"{count} x {encoding}, {len(bomb):,} bytes of {GIGABYTE:,}"
    return [
        must(
            f"{what}: how they end", ends(replies), "413", all(reply.status == 413 for reply in replies)
        ),
        must(
            f"{what}: growth of RssAnon + VmSwap, MiB",
            f"{(peak - before) / 1_024:.1f} to {peak / 1_024:.0f}",
            f"at most {GROWTH_KIB_MAX >> 10}",
            peak - before <= GROWTH_KIB_MAX,
        ),
        Figure(f"{what}: the last answer after", f"{slowest:.2f} s"),
    ]


async def throw(port: int, encoding: str, bomb: bytes) -> Reply:
    """Sends one and reads what comes."""
    head = (
        "POST /v1/systemone HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"content-encoding: {encoding}\r\ncontent-length: {len(bomb)}\r\n\r\n"
    ).encode()
    began = asyncio.get_running_loop().time()
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(head + bomb)
    raw = await reader.read()
    writer.close()
    lines = raw.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    status = int(lines[0].split()[1]) if raw else 0
    return Reply(status, fields, b"", asyncio.get_running_loop().time() - began, "" if raw else "no answer")


def zstd(size: int) -> bytes:
    """A frame of `size` zeros with a window of 2 MiB and no word about its length."""
    blocks = size // ZSTD_BLOCK
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x58")
    for number in range(blocks):
        is_last = number == blocks - 1
        frame += struct.pack("<I", ZSTD_BLOCK << 3 | 1 << 1 | is_last)[:3] + b"\0"
    return bytes(frame)
