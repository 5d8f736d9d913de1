"""Who wants it: from a notification to the ids of the filters that it satisfies.

`MatchIndex` is the compiled index, or, where that could not be built, the pure-Python one with its interface.
"""

import warnings

try:
    from palio.matching.index import MatchIndex
except ImportError as problem:
    if problem.name != "palio.matching.core":
        raise
    from palio.matching.fallback import MatchIndex  # type: ignore[assignment]

    warnings.warn(
        "Palio runs without its compiled match index, which could not be built here; matching is slow.",
        RuntimeWarning,
        stacklevel=2,
    )

__all__ = ["MatchIndex"]
