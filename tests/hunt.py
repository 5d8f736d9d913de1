"""An endless hunt for a wrong answer about filters.

    python -m tests.hunt --pairs 1000000 --seed 7           (or: make hunt PAIRS=1000000 SEED=7)
    python -m tests.hunt --seed 7 --only 4711               one pair again

Each pair is decided by the seed and its number alone. For each, matching, covering, overlap, intersection and
equality are checked against the meaning of the expressions, on notifications drawn around their constants;
where `covers` says no, a notification must show why. Every fifth pair is also merged, printed and read back.
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

CHUNK = 500


def check_number(seed: int, number: int, computed: bool) -> tuple[int, int]:
    """Check one pair; (covers was said, it was too large to be a filter)."""
    maker, first, second = pair(random.Random(f"{seed}/{number}"), computed=computed)
    try:
        covers = check_pair(maker, first, second)
        if number % 5 == 0:
            check_text(first)
            check_merge(maker, first, second)
    except FilterTooLarge:
        return 0, 1
    return int(covers), 0


def check_chunk(task: tuple[int, int, int, bool]) -> tuple[int, int, int, str | None]:
    seed, start, stop, computed = task
    covered = refused = 0
    for number in range(start, stop):
        try:
            said, large = check_number(seed, number, computed)
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
    parser.add_argument("--computed", action="store_true", help="filters of which some compute something")
    options = parser.parse_args()
    if options.only is not None:
        check_number(options.seed, options.only, options.computed)
        print("nothing wrong with this pair")
        return 0

    tasks = [
        (options.seed, start, min(start + CHUNK, options.pairs), options.computed)
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
                said = " --computed" if options.computed else ""
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
