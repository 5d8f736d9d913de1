"""The Java that Spark would start: JAVA_HOME's if that is set, otherwise the one on the PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from palio.spark.errors import JavaMissing

NEEDED = 17


def java_version() -> str:
    """Its version, such as `17.0.15`. Raises `JavaMissing`, also where it is too old."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if program is None:
        raise JavaMissing
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        raise JavaMissing(f"{program}, which does not start") from None
    found = re.search(r'version "([^"]+)"', said.stderr + said.stdout)
    if found is None:
        raise JavaMissing(f"{program}, which does not say its version")
    version = found[1]
    first = re.match(r"(?:1\.)?(\d+)", version)  # Java 8 called itself 1.8
    if first is None or int(first[1]) < NEEDED:
        raise JavaMissing(f"Java {version}")
    return version
