"""The report of an experiment: one page of Markdown with its plots beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from palio.sim.experiments.claims import ClaimFinding, evaluate
from palio.sim.experiments.definition import Experiment, Plot
from palio.sim.experiments.fits import Growth, evaluate_fits
from palio.sim.experiments.plots import draw_growth, draw_plot
from palio.sim.experiments.results import RUNS, Finished, Row, with_measures
from palio.sim.experiments.series import MeasureSeries
from palio.sim.experiments.statistics import summary
from palio.sim.experiments.wording import interval, shown
from palio.sim.failures import replay_command

REPORT = "report.md"
_MARKS = {"supported": "✓", "partly supported": "◐", "not supported": "✗", "undecided": "?"}
# Failing runs that are named one by one.
_NAMED_FAILURES = 10


class ExperimentReport(msgspec.Struct, frozen=True):
    """What was written, and what it says in short."""

    path: Path
    findings: tuple[ClaimFinding, ...]
    growths: tuple[Growth, ...]
    violations: int


def write_report(
    experiment: Experiment, finished: Sequence[Finished], folder: Path, *, quick: bool, command: str
) -> ExperimentReport:
    """Draw all plots, evaluate all claims, and write the page."""
    rows = [with_measures(experiment, one.row()) for one in finished]
    findings = evaluate(experiment, rows)
    growths = evaluate_fits(experiment, rows)
    parts = [
        f"# {experiment.title}",
        *([experiment.description.strip()] if experiment.description else []),
        _setup(finished, quick=quick, command=command),
        _correctness(finished),
        *_claims(findings),
        *_growth(experiment, growths, folder),
        *_plots(experiment, rows, folder),
    ]
    path = folder / REPORT
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    violations = sum(one.outcome.violations for one in finished)
    return ExperimentReport(path, tuple(findings), tuple(growths), violations)


def _setup(finished: Sequence[Finished], *, quick: bool, command: str) -> str:
    seeds = len({one.run.scenario.seed for one in finished})
    runs = [one.run for one in finished]
    points = len({(one.sweep, one.variant, msgspec.structs.replace(one.scenario, seed=0)) for one in runs})
    wall = sum(one.outcome.wall_seconds for one in finished)
    small = "\n\n**This is the small version (`--quick`): a first look, not a result.**" if quick else ""
    return (
        f"{len(finished):,} runs: {points:,} points with {seeds} seeds each; {wall:,.0f} seconds of simulation "
        f"in all. Made by `{command}`; every run is a row of `{RUNS}`. Error bars and the numbers after ± are "
        f"95 % intervals of the mean over the seeds (Student's t). Comparisons are paired: both sides ran with "
        f"the same seeds.{small}"
    )


def _correctness(finished: Sequence[Finished]) -> str:
    wrong = [one for one in finished if one.outcome.violations]
    if not wrong:
        return f"The oracle checked all {len(finished):,} runs and found nothing wrong."
    named = [
        f"- {one.run.sweep}, {one.run.variant}: `{replay_command(one.run.scenario)}`"
        for one in wrong[:_NAMED_FAILURES]
    ]
    total = sum(one.outcome.violations for one in wrong)
    head = (
        f"**The oracle found {total:,} violations in {len(wrong):,} of {len(finished):,} runs**, first of all:"
    )
    return "\n".join([head, "", *named])


def _claims(findings: Sequence[ClaimFinding]) -> list[str]:
    if not findings:
        return []
    counts = Counter(finding.verdict for finding in findings)
    head = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    table = ["| | claim | verdict |", "|---|---|---|"]
    table += [
        f"| {_MARKS[finding.verdict]} | {finding.claim.title} | **{finding.verdict}** |" for finding in findings
    ]
    rule = (
        "A claim is *supported* if it holds clearly (with its whole 95 % interval) at nine of ten places or "
        "more and fails clearly at none, *partly supported* if it holds clearly at half of them or more, and "
        "otherwise *not supported*."
    )
    parts = [f"## Claims: {head}", "\n".join(table), rule]
    for finding in findings:
        verdict = finding.verdict.capitalize()
        parts.append(f"### {finding.claim.title}\n\n**{verdict}.** {finding.sentence}")
        if finding.details:
            parts.append("\n".join(f"- {one}" for one in finding.details))
    return parts


def _growth(experiment: Experiment, growths: Sequence[Growth], folder: Path) -> list[str]:
    parts = ["## Growth"] if growths else []
    for _, group in groupby(growths, key=lambda growth: growth.fit.name):
        found = list(group)
        fit = found[0].fit
        if not any(growth.measured for growth in found):
            continue
        name = draw_growth(experiment, found, folder)
        parts += [f"### {fit.title}", f"![{fit.title}]({name}.png)"]
        if fit.reasoning:
            parts.append(f"On paper: {fit.reasoning.strip()}")
        parts.append(_growth_table(experiment, found))
    return parts


def _growth_table(experiment: Experiment, found: Sequence[Growth]) -> str:
    fit = found[0].fit
    along = experiment.short_label(fit.along)
    beyond = [f"fit at {shown(x)} | on paper at {shown(x)}" for x in fit.extrapolate]
    head = ["variant", f"fitted {experiment.short_label(fit.y)} (x = {along})", "exponent", *beyond]
    head.append("formula on paper, and by how much it misses the measured at most")
    table = [f"| {' | '.join(head)} |", "|" + "---|" * (" | ".join(head).count(" | ") + 1)]
    for growth in found:
        law = growth.law
        cells = [growth.variant]
        if law is None:
            cells += ["no fit", "–"]
        else:
            cells += [f"{law.factor:.3g} · x^{law.exponent:.3f}", f"{law.exponent:.2f} ± {law.half_width:.2f}"]
        for x in fit.extrapolate:
            cells += [shown(law(x)) if law is not None else "–", shown(growth.paper(x))]
        text = fit.paper.get(growth.variant)
        cells.append(f"`{text}`, factor {growth.paper_error:.2f}" if text else "–")
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join(table)


def _plots(experiment: Experiment, rows: Sequence[Row], folder: Path) -> list[str]:
    parts = ["## Plots"] if experiment.plots else []
    for plot in experiment.plots:
        if not MeasureSeries(experiment.sweep(plot.sweep), rows, plot.y, plot.where).points:
            parts += [f"### {plot.title}", "None of the runs belongs here."]
            continue
        name = draw_plot(experiment, plot, rows, folder)
        parts += [f"### {plot.title}", f"![{plot.title}]({name}.png)"]
        if plot.text:
            parts.append(plot.text.strip())
        parts.append(_numbers(experiment, plot, rows))
    return parts


def _numbers(experiment: Experiment, plot: Plot, rows: Sequence[Row]) -> str:
    """The numbers of a plot as a table that folds out."""
    series = MeasureSeries(experiment.sweep(plot.sweep), rows, plot.y, plot.where)
    variants = plot.variants or series.variants
    fields = [name for name, _ in series.points[0]] if series.points else []
    head = [experiment.short_label(name) for name in fields] + variants
    table = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for point in series.points:
        cells = [shown(value) for _, value in point]
        cells += [interval(summary(series.values(point, variant))) for variant in variants]
        table.append(f"| {' | '.join(cells)} |")
    body = "\n".join(table)
    return f"<details><summary>{experiment.label(plot.y)}</summary>\n\n{body}\n\n</details>"
