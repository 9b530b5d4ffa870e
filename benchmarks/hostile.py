"""Measure time and memory that hostile mail takes, from the archive to chunks.

    python -m benchmarks.hostile [WORD ...]

Each case is an archive of one message and runs in its own process: split, parse, segments, patches,
identifiers, chunks. Seconds are CPU time. Memory is the growth of the peak after a harmless message
was read. A WORD selects the cases whose names contain it. The cases are those of the tests.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.segments import new_text_spans, segment_with_attached
from mail_assets.mail.message.body import PatchFile
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.patches.read import PatchMail, read_patches
from mail_assets.text.chunking import chunk_body
from mail_assets.text.identifiers import find_identifiers, list_patch_names
from mail_assets_tests.mail.hostile import CASES, HEAD, LINE

MODEL = LOCAL_MODELS["all-minilm-l6-v2"]
T = TypeVar("T")
STAGES = ("split", "parse", "segment", "patches", "identify", "chunk")


class Cost(NamedTuple):
    """Cost of one case."""

    seconds: dict[str, float]  # by stage
    megabytes: float
    result: str


def main() -> None:
    """Measure; print a table in Markdown, slowest case first."""
    words = sys.argv[1:]
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "archive")
        for name in CASES:
            if not words or any(word in name for word in words):
                in_new_process(write, name, path)
                costs[name] = in_new_process(measure, path)
    print(f"| case | seconds | {' | '.join(STAGES)} | MB | what came out |")
    print(f"|{'---|' * (len(STAGES) + 4)}")
    for name, cost in sorted(costs.items(), key=lambda item: -sum(item[1].seconds.values())):
        stages = " | ".join(f"{cost.seconds[stage]:.2f}" for stage in STAGES)
        total = sum(cost.seconds.values())
        print(f"| {name} | {total:.2f} | {stages} | {cost.megabytes:.0f} | {cost.result} |")


def in_new_process(work: Callable[..., T], *arguments: object) -> T:
    """Call work in a spawned process; a forked one would inherit the peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(work, arguments)


def write(name: str, path: Path) -> None:
    """Write the archive of a case."""
    path.write_bytes(CASES[name]())


def measure(path: Path) -> Cost:
    """Return the cost of reading an archive of one message, after a harmless one as warm-up."""
    harmless = path.with_name("harmless")
    harmless.write_bytes(LINE + HEAD + b"\ntext\n")
    _read(harmless)
    before = _peak_mb()
    seconds, result = _read(path)
    return Cost(seconds, _peak_mb() - before, result)


def _read(path: Path) -> tuple[dict[str, float], str]:
    tokenizer = load_tokenizer(MODEL)
    seconds = dict.fromkeys(STAGES, 0.0)

    def timed(stage: str, work: Callable[[], T]) -> T:
        began = time.process_time()
        try:
            return work()
        finally:
            seconds[stage] += time.process_time() - began

    [raw] = timed("split", lambda: list(split_archive(path, "plain")))
    message = timed("parse", lambda: parse_message(raw, month="2026-01", dialect="plain"))
    body = message.body_text
    parts = timed("segment", lambda: segment_with_attached(body, message.attached_texts))
    spans = new_text_spans(body, parts)
    new = "".join(body[start:end] for start, end in spans)
    patches = [body[part.start : part.end] for part in parts if part.kind == "patch"]
    patches += message.patch_texts
    mail = PatchMail(
        *(message.message_id, message.subject, message.from_name, message.from_email),
        *(message.sent_at, message.in_reply_to, body, parts),
        [PatchFile("", text) for text in message.patch_texts],
    )
    timed("patches", lambda: read_patches(mail))
    names = timed(
        "identify", lambda: find_identifiers(f"{message.subject}\n{new}", list_patch_names(patches))
    )
    chunks = timed(
        "chunk", lambda: chunk_body(body, spans, message.subject, tokenizer, MODEL.sizes)
    )
    result = (
        f"{len(body)} characters, {len(message.attachments)} attachments, {len(names)} names, "
        f"{len(chunks.chunks)} chunks; {', '.join(message.flags) or 'no flag'}"
    )
    return seconds, result


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
