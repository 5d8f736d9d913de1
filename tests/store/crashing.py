"""A process that writes until it is killed: `python -m tests.store.crashing URL EFFECTS SEED`.

It says how many effects are known to be on disk whenever more of them are.
"""

from __future__ import annotations

import pickle
import random
import sys
import time
from pathlib import Path

from palio.routing.durable.effects import Trim
from palio.routing.occurrences import StoreMessage
from palio.store import SqlStore


def main(url: str, path: str, seed: str) -> None:
    effects = pickle.loads(Path(path).read_bytes())
    places = {effect.token: place for place, effect in enumerate(effects, 1) if not isinstance(effect, Trim)}

    def completed(answers: list[StoreMessage]) -> None:
        print(places[answers[-1].token], flush=True)

    choose = random.Random(seed)
    with SqlStore.open(url, broker="b", completed=completed, retention=1e12) as store:
        while effects:
            count = choose.choice([1, 2, 5, 50])
            store.submit(effects[:count])
            del effects[:count]
            while store.statistics().queued > 100:
                time.sleep(0.001)


if __name__ == "__main__":
    main(*sys.argv[1:])
