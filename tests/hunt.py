"""An endless hunt for a wrong answer about filters.

    python -m tests.hunt --pairs 1000000 --seed 7           (or: make hunt PAIRS=1000000 SEED=7)
    python -m tests.hunt --seed 7 --only 4711               one pair again

Each pair is decided by the seed and its number alone. For each, matching, covering, overlap, intersection and
equality are checked against the meaning of the expressions, on notifications drawn around their constants;
where `covers` says no, a notification must show why. Every fifth pair is also merged, printed and read back.

With --computed some conditions compute something. With --selectors each pair is a message selector and a
message, SELECTOR_MESSAGES of these for each selector, and what it selects is compared with the tables of SQL.
"""

import argparse
import multiprocessing
import random
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from palio.model.errors import FilterTooLarge
from tests.generators import pair
from tests.relations import check_merge, check_pair, check_text
from tests.selectors import check as check_selector

CHUNK = 500
SELECTOR_MESSAGES = 10


def check_number(seed: int, number: int, kind: str) -> tuple[int, int]:
    """Check one pair; (covers was said, it was too large to be a filter)."""
    if kind == "selectors":
        if number % SELECTOR_MESSAGES == 0:
            check_selector(random.Random(f"{seed}/{number}"), SELECTOR_MESSAGES)
        return 0, 0
    maker, first, second = pair(random.Random(f"{seed}/{number}"), computed=kind == "computed")
    try:
        covers = check_pair(maker, first, second)
        if number % 5 == 0:
            check_text(first)
            check_merge(maker, first, second)
    except FilterTooLarge:
        return 0, 1
    return int(covers), 0


def check_chunk(task: tuple[int, int, int, str]) -> tuple[int, int, int, str | None]:
    seed, start, stop, kind = task
    covered = refused = 0
    for number in range(start, stop):
        try:
            said, large = check_number(seed, number, kind)
        except Exception as problem:  # noqa: BLE001  (whatever it is, it is what we hunt for)
            return number - start + 1, covered, refused, f"pair {number}: {type(problem).__name__}: {problem}"
        covered += said
        refused += large
    return stop - start, covered, refused, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--only", type=int, metavar="NUMBER", help="check one pair, with its stack trace")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--computed", dest="kind", action="store_const", const="computed", default="filters")
    kind.add_argument("--selectors", dest="kind", action="store_const", const="selectors")
    options = parser.parse_args()
    if options.only is not None:
        check_number(options.seed, options.only, options.kind)
        print("nothing wrong with this pair")
        return 0

    tasks = [
        (options.seed, start, min(start + CHUNK, options.pairs), options.kind)
        for start in range(0, options.pairs, CHUNK)
    ]
    console = Console(stderr=True)
    console.print(f"seed {options.seed}, {options.pairs:,} pairs, {options.workers} workers")
    checked = covered = refused = 0
    started = time.monotonic()
    columns = (TextColumn("hunting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        multiprocessing.Pool(options.workers) as pool,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        bar = progress.add_task("", total=options.pairs)
        for count, said, large, problem in pool.imap_unordered(check_chunk, tasks):
            checked += count
            covered += said
            refused += large
            progress.update(bar, completed=checked)
            if problem is not None:
                print(problem)
                said = "" if options.kind == "filters" else f" --{options.kind}"
                print(
                    f"again: python -m tests.hunt --seed {options.seed} --only {problem.split()[1][:-1]}{said}"
                )
                return 1
    took = time.monotonic() - started
    print(
        f"{checked:,} pairs in {took:,.0f} s, seed {options.seed}: nothing wrong; "
        f"{covered:,} times covers was said, {refused:,} pairs were too large"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
