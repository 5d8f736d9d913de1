"""`palio` for the shells of the tests: asks `tests.cli.forks` for a process, and ends as that one does.

Run as a script, without the modules of the program: a shell that types twenty commands waits for none to load.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(path: str, *words: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forks:
        forks.connect(path)
        forks.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until it is known to whom they go
        request = {
            "function": "palio.cli.main:main",
            "words": words,
            "folder": os.getcwd(),
            "environment": dict(os.environ),
        }
        socket.send_fds(forks, [json.dumps(request).encode()], [0, 1, 2])
        process = json.loads(forks.recv(1024))["started"]
        for number in FORWARDED:
            signal.signal(number, lambda number, _: os.kill(process, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        for one in (0, 1, 2):
            os.close(one)  # whoever reads what the process writes sees its end
        code: int = json.loads(forks.recv(1024))["code"]
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
