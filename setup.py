"""The compiled parts: the matcher's core, a short way to bytes. Where they cannot be built, Python does it.

Built for the baseline of the architecture; wider vectors are chosen at run time. `PALIO_SANITIZE=1` builds it
with the address and undefined-behaviour sanitizers instead (`make sanitize`).
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

FLAGS = [] if sys.platform == "win32" else ["-O3", "-std=c11", "-fno-strict-aliasing"]
LINK = []
if os.environ.get("PALIO_SANITIZE"):
    FLAGS = [
        "-O1",
        "-g",
        "-std=c11",
        "-DPALIO_PLAIN",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
    ]
    LINK = ["-fsanitize=address,undefined"]

setup(
    ext_modules=[
        Extension(
            "palio.matching.core",
            ["src/palio/matching/core.pyx"],
            depends=[
                *map(str, Path("src/palio/matching").glob("*.pxi")),
                *map(str, Path("src/palio/matching/native").glob("*.h")),
            ],
            include_dirs=["src/palio/matching"],
            extra_compile_args=FLAGS,
            extra_link_args=LINK,
            optional=True,
        ),
        Extension(
            "palio.model.quick",
            ["src/palio/model/quick.pyx"],
            extra_compile_args=FLAGS,
            extra_link_args=LINK,
            optional=True,
        ),
    ]
)
