"""The process from which Spark's Pythons are forked in tests: `python -m tests.spark.preloading.origin FD`.

FD is a listening socket. The process imports once what all of them need; whoever asks earlier waits. A request
is one packet with the three standard streams; the answers are the number of the new process, and later how it
ended. The origin ends when its own input does.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress

from tests.forking import stand_in

_PACKET = 1 << 17  # bytes; an environment is the largest part


def load() -> None:
    """All that a worker, or whoever plans for Spark, imports before its first task."""
    import google.protobuf.descriptor  # noqa: F401 - all of these are for those that are forked
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pyspark.sql.streaming.proto.StateMessage_pb2
    import pyspark.sql.streaming.stateful_processor_api_client
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401
    import sqlalchemy.dialects.sqlite  # noqa: F401

    import palio.spark.lake.archiving
    import palio.spark.lake.rewriting
    import palio.spark.lookback.backtesting
    import palio.spark.matching.bulk
    import palio.spark.patterns.finding
    import palio.spark.source.format
    import palio.spark.source.from_broker
    import palio.spark.source.from_store
    import palio.spark.stats.event_scans  # noqa: F401


def serve(listener: socket.socket) -> None:
    """Fork for each request, until standard input ends."""
    asking: dict[int, socket.socket] = {}  # by the process that was forked for it
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests ends them, and so this
    while True:
        ready, _, _ = select.select([listener, woken, 0], [], [])
        if 0 in ready:
            return
        if woken in ready:
            os.read(woken, 1024)
            _reap(asking)
        if listener in ready:
            asker, _ = listener.accept()
            request, streams, _, _ = socket.recv_fds(asker, _PACKET, 3)
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                for one in (woken, wake, listener.detach(), asker.detach()):
                    os.close(one)
                for one in asking.values():
                    one.close()
                _become(json.loads(request), streams)
            asking[process] = asker
            asker.send(json.dumps(process).encode())
            for one in streams:
                os.close(one)


def _reap(asking: dict[int, socket.socket]) -> None:
    while asking:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        with asking.pop(process) as asker, suppress(OSError):  # Spark may have ended it already
            asker.send(json.dumps(abs(os.waitstatus_to_exitcode(status))).encode())


def _become(request: dict, streams: list[int]) -> None:
    """Be the Python that asked, and end with it."""
    stand_in(streams, request["environment"])
    sys.path[:] = request["path"]
    module, *sys.argv[1:] = request["words"]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python ends with whatever it is
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
