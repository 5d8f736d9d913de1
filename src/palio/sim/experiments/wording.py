"""How numbers are said in texts and plots."""

from __future__ import annotations

import math

from palio.sim.experiments.statistics import Summary


def interval(found: Summary) -> str:
    """`-3.2 ± 0.4`, or the bare mean where there is no interval."""
    if not math.isfinite(found.half_width):
        return shown(found.mean)
    negligible = found.half_width < abs(found.mean) * 1e-9  # nothing but rounding
    return f"{shown(found.mean)} ± {'0' if negligible else shown(found.half_width)}"


def shown(value: object) -> str:
    """A number with three digits that mean something; words as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "none" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 2:
        return f"{round(value, 2 - size):,.0f}" if size > 5 else f"{value:,.0f}"
    return f"{value:.{max(0, 2 - size)}f}".rstrip("0").rstrip(".") if size >= -4 else f"{value:.2g}"
