"""One broker of `palio network up`, as a process: its settings come on standard input, and so does its end.

The first line of standard input is the settings, as JSON. After that nothing comes; when standard input ends,
because the program that started this one has closed it or is gone, the broker stops in order. On standard
output there is one line: where the broker listens, or why it does not.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from palio.broker.settings import Settings
from palio.cli.brokers.hosting import host
from palio.cli.brokers.up import ports
from palio.cli.program.endings import code_of
from palio.cli.program.terminal import ExitCode, write_json
from palio.model.errors import PalioError

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


def main() -> int:
    """Run the broker. Returns the exit code."""
    settings = msgspec.json.decode(_first_line(), type=Settings)

    def started(broker: BrokerServer) -> None:
        write_json(ports(broker))

    try:
        host(settings, started, life=sys.stdin.fileno())
    except PalioError as problem:
        write_json({"error": str(problem)})
        return code_of(problem)
    return ExitCode.SUCCESS


def _first_line() -> bytes:
    """Read byte by byte as the system gives them: a buffer would keep the end of the input to itself."""
    line = b""
    while not line.endswith(b"\n") and (part := os.read(sys.stdin.fileno(), 65_536)):
        line += part
    return line


if __name__ == "__main__":
    sys.exit(main())
