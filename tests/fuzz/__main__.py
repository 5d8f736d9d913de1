"""Let atheris look for bytes that the decoders cannot bear: `python -m tests.fuzz --seconds 3600`.

Each decoder has a process of its own, one after the other, and a part of the time: none that is slow takes
it from the others. It begins with the corpus and with words of our languages, and keeps what reaches something
new in `build/fuzz`, which is not in the repository. What the decoder cannot bear is written there, too, and the
log says why. `--only NAME` looks at one decoder.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FOUND = Path("build/fuzz")
# In bytes. What is read by hand grows harder with its length, and its mistakes are found in short texts.
LONGEST = {"filters": 160, "advertisements": 160, "patterns": 200, "subscriptions": 400, "sinks": 200}
LONGEST_OF_OTHERS = 1_024
# In seconds of work, for one input.
SLOWEST = 10.0
# Parts of the time; one for those that are not here.
SHARES = {"filters": 4, "messages": 2, "patterns": 2, "events": 2, "requests": 2, "subscriptions": 2}
# By the clock, and so long that whoever halts the process for a while is not taken for a decoder that hangs.
HANGING = 900
NAMES = sorted(folder.name for folder in (HERE / "corpus").iterdir())
_ROW = "{:<16}{:>8}{:>12}{:>10}{:>8}{:>10}  {}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="how long to work, in all")
    parser.add_argument("--only", choices=NAMES, action="append", help="a decoder; all by default")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only or NAMES
    if options.inside:
        look(names[0], options.seconds)
    print(_ROW.format("decoder", "seconds", "inputs", "a second", "edges", "features", "found"), flush=True)
    shares = {name: SHARES.get(name, 1) for name in names}
    share = options.seconds / sum(shares.values())
    found = [name for name, parts in shares.items() if not _look_aside(name, max(1, round(parts * share)))]
    return 1 if found else 0


def look(name: str, seconds: int) -> None:
    """Look at one decoder in this process, which ends with that."""
    import atheris  # it changes how modules are loaded: in this process only

    with atheris.instrument_imports(include=["palio"]):
        from tests.fuzz.decoders import DECODERS

    decoder = DECODERS[name]
    own = FOUND / name
    own.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_len={LONGEST.get(name, LONGEST_OF_OTHERS)}",
        f"-timeout={HANGING}",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-dict={HERE / 'words.txt'}",
        f"-artifact_prefix={FOUND / name}-",
    ]
    began = now = time.process_time()

    def bear(data: bytes) -> None:
        nonlocal now
        before = now
        decoder(data)
        now = time.process_time()
        assert now - before < SLOWEST
        if now - began > seconds:
            signal.raise_signal(signal.SIGUSR1)  # by which libFuzzer ends in order

    atheris.Setup([sys.argv[0], *options, str(own), str(HERE / "corpus" / name)], bear)
    atheris.Fuzz()


def _look_aside(name: str, seconds: int) -> bool:
    """Look at one decoder in another process, and print what it reached. Returns whether nothing was found."""
    FOUND.mkdir(parents=True, exist_ok=True)
    log = FOUND / f"{name}.log"
    command = [sys.executable, "-m", "tests.fuzz", "--inside", "--only", name, "--seconds", str(seconds)]
    before = os.times()
    with log.open("wb") as output:
        good = subprocess.run(command, stdout=output, stderr=output, check=False).returncode == 0
    said = log.read_text(errors="replace")
    inputs = int((re.findall(r"number_of_executed_units: (\d+)", said) or ["0"])[-1])
    edges, features = map(int, (re.findall(r"cov: (\d+) ft: (\d+)", said) or [("0", "0")])[-1])
    working = os.times().children_user - before.children_user
    row = [
        name,
        f"{working:.0f}",
        *(f"{one:,.0f}" for one in (inputs, inputs / max(working, 1.0), edges, features)),
    ]
    print(_ROW.format(*row, "nothing" if good else log), flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
