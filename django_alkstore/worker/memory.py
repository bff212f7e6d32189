"""How much memory this process holds."""

from __future__ import annotations

import os
import sys

MEGABYTE = 2**20


def resident_megabytes() -> float:
    """
    Return the resident memory of this process; where only the peak is known, that.
    """
    try:
        with open("/proc/self/statm", "rb") as statm:
            pages = int(statm.read().split()[1])
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Linux and the BSDs count kilobytes, macOS counts bytes.
        return peak / MEGABYTE if sys.platform == "darwin" else peak / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
