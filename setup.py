"""The compiled parts: the matcher's core, a short way to bytes. Where they cannot be built, Python does it.

Built for the baseline of the architecture; wider vectors are chosen at run time. `PALIO_SANITIZE=1` builds it
with the address and undefined-behaviour sanitizers instead (`make sanitize`).
"""

import importlib
import os
import sys
from importlib.util import find_spec
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

# What walks over documents is built against the headers of lxml, where these are.
WALK = [
    Extension(
        "palio.documents.quick",
        ["src/palio/documents/quick.pyx"],
        include_dirs=importlib.import_module("lxml").get_include() if find_spec("lxml") else [],
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
        optional=True,
    )
]

setup(
    ext_modules=[
        *(WALK if find_spec("lxml") else []),
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
