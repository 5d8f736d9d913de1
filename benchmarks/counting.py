"""The yardstick: a counting matcher in plain C, compiled for the machine that the benchmark runs on."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.workloads import Subscriptions, Workload

OWN = Path(__file__).with_name("counting.c")
# The neutral one, where the shared data lie beside the repository.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "counting.c"


class Yardstick:
    """One workload's subscriptions in a counting matcher."""

    def __init__(self, workload: Workload, drawn: Subscriptions, source: Path | None = None) -> None:
        """Raises FileNotFoundError where there is no C compiler."""
        self.source = source or (SHARED if SHARED.exists() else OWN)
        # A library of its own each time: the neutral one keeps its subscriptions in globals. Once it is loaded,
        # its file is not needed any more.
        with tempfile.TemporaryDirectory(prefix="palio-counting-") as directory:
            self._library = ctypes.CDLL(str(compiled(self.source, Path(directory))))
        self._own = hasattr(self._library, "counting_build")
        arguments = (
            ctypes.c_int64(len(drawn)),
            ctypes.c_int32(len(workload.attributes)),
            _address(drawn.starts),
            _address(drawn.attributes),
            _address(drawn.low),
            _address(drawn.high),
        )
        build = self._library.counting_build if self._own else self._library.build
        build.restype = ctypes.c_void_p
        self._built = build(*arguments)

    def match(self, levels: Any) -> tuple[int, float]:
        """Matches in all, and seconds."""
        match = self._library.counting_match if self._own else self._library.match
        match.restype = ctypes.c_int64
        first = (ctypes.c_void_p(self._built),) if self._own else ()
        start = time.perf_counter()
        found = match(*first, ctypes.c_int64(len(levels)), _address(levels))
        return int(found), time.perf_counter() - start


def compiled(source: Path, directory: Path) -> Path:
    """A C file as a library in a directory. Raises FileNotFoundError where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("There is no C compiler for the yardstick.")
    target = directory / "counting.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(target), str(source)], check=True)
    return target


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
