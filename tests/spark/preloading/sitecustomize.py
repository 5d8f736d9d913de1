"""What every Python does first that Spark starts in tests, as this folder is on its path: let another be it.

Spark starts a process for each sort of worker: for tasks, for planning a read or a write of `format("palio")`,
and two for each stream. Each would import pandas, pyarrow and palio, which takes two seconds and is longer than
what it is there for. `origin` has done that once, and forks a process that is what this one would be; this
one stays behind, hands on the signal by which Spark ends it, and ends as the other does.
"""

from __future__ import annotations

import os
import sys

if "PALIO_ORIGIN" in os.environ and "-m pyspark." in " ".join(sys.orig_argv):
    import json
    import signal
    import socket

    words = sys.orig_argv[sys.orig_argv.index("-m") + 1 :]
    path = [os.getcwd(), *sys.path]  # as Python does for -m, though later
    request = {"words": words, "path": path, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as origin:
        origin.connect(os.environ["PALIO_ORIGIN"])
        socket.send_fds(origin, [json.dumps(request).encode()], [0, 1, 2])
        process = json.loads(origin.recv(64))
        signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
        code = origin.recv(64)
    os._exit(json.loads(code or b"1"))
