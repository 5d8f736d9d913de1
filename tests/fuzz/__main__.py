"""Let atheris look for bytes that the decoders cannot bear: `python -m tests.fuzz --seconds 60`.

It begins with the corpus, and keeps what reaches something new in a folder beside it, which is not in the
repository. What it finds is written to `build/fuzz` and ends it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["palio"]):
    from tests.fuzz.decoders import run

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="how long to look")
    seconds = parser.parse_args().seconds
    found = Path("build/fuzz")
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=120", "-rss_limit_mb=2048"]
    places = [str(found / "corpus"), str(HERE / "corpus")]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={found}/", "-print_final_stats=1", *places], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
