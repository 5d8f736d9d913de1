"""Every promise about a pair of filters, as one check: used by the tests and by the endless hunt."""

from palio.model.expression import text_of
from palio.model.filter import Filter
from palio.model.notification import Notification
from tests.generators import Maker
from tests.reference import evaluate


class Broken(AssertionError):
    """A promise that did not hold, with all that is needed to see it again."""

    def __init__(self, promise: str, first, second, notification: Notification | None = None) -> None:
        shown = dict(notification.attributes) if notification is not None else None
        super().__init__(
            f"{promise}\n  first:  {text_of(first)}\n  second: {text_of(second)}\n  on:     {shown!r}"
        )


def check_pair(maker: Maker, first, second, notifications: int = 20) -> bool:
    """Check all that is promised about two expressions; True if the first covers the second."""
    f, g = Filter.from_expression(first), Filter.from_expression(second)
    covers, overlaps = f.covers(g), f.overlaps(g)
    both = f.intersect(g)

    def broken(promise: str, notification: Notification | None = None) -> Broken:
        return Broken(promise, first, second, notification)

    for _ in range(notifications):
        n = maker.notification()
        in_f, in_g = evaluate(first, n.attributes), evaluate(second, n.attributes)
        if f.matches(n) != in_f or g.matches(n) != in_g:
            raise broken("A filter matches what its expression means.", n)
        if covers and in_g and not in_f:
            raise broken("Covers is never said wrongly.", n)
        if in_f and in_g and not overlaps:
            raise broken("Filters that share a notification overlap.", n)
        if both.matches(n) != (in_f and in_g):
            raise broken("The intersection is what both select.", n)

    computed = f.has_residuals or g.has_residuals  # then some is unknown, and what is said is safe
    if not covers and not computed and f.counterexample(g) is None:
        raise broken("Where covers is not said, there is a notification that shows why.")
    if overlaps != bool(both.conjunctions):
        raise broken("Filters overlap exactly if their intersection is not a contradiction.")
    if overlaps and not computed:
        witness = both.example()
        if witness is None or not (
            evaluate(first, witness.attributes) and evaluate(second, witness.attributes)
        ):
            raise broken("Filters that overlap share a notification.", witness)
    alike = covers and g.covers(f)
    if (f == g and not alike) or (alike and f != g and not computed) or (f == g and hash(f) != hash(g)):
        raise broken("Filters are equal exactly if they cover each other, and then hash alike.")
    return covers


def check_text(expression) -> None:
    """The printed text is read back to an equal filter, and printed the same again."""
    f = Filter.from_expression(expression)
    text = str(f)
    again = Filter.parse(text)
    if again != f or hash(again) != hash(f) or str(again) != text:
        raise Broken(f"Print, parse, print is stable: {text!r} became {str(again)!r}.", expression, expression)
    if Filter.parse(text_of(expression)) != f:
        raise Broken("An expression's own text means the same.", expression, expression)


def check_merge(maker: Maker, first, second, notifications: int = 20) -> None:
    """A merge covers both, and what it selects beyond them is exactly what it names."""
    f, g = Filter.from_expression(first), Filter.from_expression(second)
    merge = f.merge(g)
    if not (merge.filter.covers(f) and merge.filter.covers(g)):
        raise Broken("A merge covers both.", first, second)
    if merge.perfect == bool(merge.extra.conjunctions) or not 0.0 <= merge.extra_share <= 1.0:
        raise Broken("A merge is perfect exactly if it names nothing in addition.", first, second)
    if merge.perfect != (merge.extra_share == 0.0):
        raise Broken("A share of zero means that a merge is perfect, and only that.", first, second)
    for _ in range(notifications):
        n = maker.notification()
        wanted = f.matches(n) or g.matches(n)
        if merge.filter.matches(n) != (wanted or merge.extra.matches(n)) or (wanted and merge.extra.matches(n)):
            raise Broken("What a merge selects beyond the two is exactly what it names.", first, second, n)
