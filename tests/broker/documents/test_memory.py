"""What reading documents takes is within what `palio config check` says, whoever writes them."""

import json
import subprocess
import sys

from palio.broker.documents.settings import DocumentSettings
from palio.broker.memory import memory_bound
from palio.broker.settings import Settings

# Reads documents until their thread is worn, each with as many nodes and as many new names as there may be, and
# says how many bytes more were needed at the most.
_READ = """
import json, sys, threading
from palio.documents.errors import DocumentRefused
from palio.documents.family import Family, FamilyPath
from palio.documents.parsing import DocumentLimits, parse_document, thread_is_worn
from palio.documents.reading import DocumentReader

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

paths = [FamilyPath(path, "string", True) for path in ("//b/@c", "count(//*)", "/a/b[5]", "//b[last()]")]
reader = DocumentReader(Family("a", "", "a", paths=tuple(paths)))
names = [b"".join(b"<b%06x%03x/>" % (i, n) for i in range(80_000)) for n in range(8)]
nodes = b'<b c=""/>x' * 49_000 + b"<b/>y" * 50_000
before = peak()

def read():
    for content in [*names, nodes]:
        try:
            reader.read(b"<a>" + content + b"</a>")
        except DocumentRefused:
            pass
    print(json.dumps([peak() - before, thread_is_worn()]))

for _ in range(2):
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
"""


def part(settings):
    [found] = [one for one in memory_bound(settings) if one.what == "documents that are being read"]
    return found.bytes


def test_the_bound_grows_with_workers_and_size():
    one, two, small = [
        Settings(documents=DocumentSettings(workers=workers, size=size))
        for workers, size in ((1, 1_000_000), (2, 1_000_000), (1, 1_000))
    ]
    assert part(two) == 2 * part(one)
    assert part(one) - part(small) == 999_000


def test_a_worker_needs_no_more_than_its_part():
    command = [sys.executable, "-c", _READ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    settings = Settings()
    for line in done.stdout.splitlines():
        needed, worn = json.loads(line)
        assert worn
        assert needed < part(settings) / settings.documents.workers
