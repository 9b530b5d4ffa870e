"""Memory that was freed goes back to the system."""

import ctypes
from pathlib import Path

import pytest

from mail_assets.processes.workers import release_freed_memory

MB = 1 << 20
#: Blocks that malloc takes from its heap, and not each by mmap: these it keeps when they are freed.
BLOCK, BLOCKS = 64 << 10, 3_200


def resident() -> int:
    """Return the bytes that this process has in memory."""
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) << 10


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc"
)
def test_what_was_freed_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    last = libc.malloc(BLOCK)  # the heap's end does not shrink by itself
    for block in blocks:
        libc.free(block)
    before = resident()
    release_freed_memory()
    libc.free(last)
    assert before - resident() > BLOCKS * BLOCK // 2
