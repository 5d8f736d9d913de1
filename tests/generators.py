"""Filters and notifications at random, drawn close to each other so that they meet.

Everything is decided by a `random.Random`, or by hypothesis through `strategies.randoms()`, which can then
shrink what it found. Notifications take their values from around the constants of the filters: the constant,
its neighbours, the same number of the other kind, pieces and extensions of a text.
"""

import math
from datetime import UTC, datetime, timedelta

from palio.model.advertisement import Advertisement
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, Constraint
from palio.model.expression import Always, And, Condition, Expression, Not, Or, truth_of
from palio.model.filter import Filter
from palio.model.formulas.formula import Constant, Formula, Variable
from palio.model.formulas.residual import call
from palio.model.notification import Notification
from palio.model.questions import like_of, variants_of
from palio.model.values import INT_MAX, INT_MIN, Kind
from palio.model.valueset import EMPTY, ValueSet, union

NAMES = ("a", "b", "c")
NUMBERS = (0, 1, 2, 3, 5, -1, 0.0, 0.5, 2.5, 3.0, -0.5, 2.0)
FAR_NUMBERS = (2**53, 2**53 + 1, -(2**53) - 1, 9007199254740992.0, INT_MAX, INT_MIN, 1e300, -1e300, 5e-324)
TIMES = tuple(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
LETTERS = "ab/"
FAR_LETTERS = "\0é\ud7ff\ue000\U0010ffff"
GLOBS = ("*", "**", "a/*", "a/**", "**/b", "*/b", "a*", "*a*", "a/**/b", "**/a/**", "a*b/*", "/**", "*/*")
LIKES = ("_", "%_", "a_", "_%b", "a%b", "%a%b%", "a_b%", "__", "a!_%", "%/_%", "_b%a")
LIKES = tuple(like_of(pattern, "!") for pattern in LIKES)  # as constraints have them
# Each with texts that it matches, or nearly does.
REGEXES = {
    "[ab]+": ("ab", "a/b"),
    "a|b/": ("a", "b/"),
    "(ab)*": ("", "abab"),
    "[^a]*": ("b/", "ba"),
    "a.b?": ("a/", "aab"),
    "(a|b){2,3}": ("ab", "abba"),
    "a*b*/": ("aab/", "/"),
    ".*/a.*": ("b/ab", "/\n"),
    "[a-c/]{1,2}": ("c", "a/"),
    "(a?b?){2}": ("abab", "ba"),
    "a{0,3}": ("aaa", "aaaa"),
    "[\\u0000-a]": ("a", "\0"),
}
REGEXES = {pattern.replace("\\u0000", "\0"): texts for pattern, texts in REGEXES.items()}
NETWORKS = {
    "10.0.0.0/8": ("10.1.2.3", "10.01.2.3", "11.0.0.0"),
    "10.1.0.0/16": ("10.1.2.3", "10.2.2.3"),
    "10.1.2.0/30": ("10.1.2.3", "10.1.2.4"),
    "0.0.0.0/0": ("255.255.255.255", "256.1.1.1"),
    "2001:db8::/32": ("2001:db8::1", "2001:db8:0:0:1::", "2001:db9::"),
    "2001:db8:0:1::/64": ("2001:db8:0:1::", "2001:db8:0:1:0:1::"),
    "::/127": ("::", "::1", "::2"),
}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ARITIES = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "remainder": 2, "negate": 1, "abs": 1, "floor": 1,
    "ceil": 1, "round": 1, "lower": 1, "upper": 1, "length": 1, "coalesce": 2,
}  # fmt: skip


PATTERNS = ("like", "regex", IN_NETWORK, IGNORING_CASE)


class Maker:
    """Makes expressions; remembers the constants that it used."""

    def __init__(self, random, names=NAMES, texts=True, lists=True, computed=False):
        self.random = random
        self.names = names
        self.texts = texts
        self.lists = lists
        self.computed = computed
        self.constants: dict[str, list] = {name: [] for name in names}

    def expression(self, depth: int = 2) -> Expression:
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            return self.condition()
        if choice < 0.4:
            return Not(self.expression(depth - 1))
        operands = tuple(self.expression(depth - 1) for _ in range(self.random.randint(2, 3)))
        return And(operands) if choice < 0.8 else Or(operands)

    def conjunction(self) -> Expression:
        return And(tuple(self.condition() for _ in range(self.random.randint(1, 4))))

    def condition(self) -> Expression:
        if self.random.random() < 0.02:
            return Always(self.random.random() < 0.5)
        if self.computed and self.random.random() < 0.4:
            return self.comparison()
        name = self.random.choice(self.names)
        return Condition(name, self.constraint(name))

    def comparison(self) -> Expression:
        """What is computed, compared with something; few enough that pairs meet the same."""
        random = self.random
        sign = random.choice(("less", "less_or_equal", "greater", "greater_or_equal", "equal", "unequal"))
        left = self.formula(random.randint(0, 2))
        return truth_of(call(sign, left, self.formula(random.randint(0, 1))))

    def formula(self, depth: int) -> Formula:
        random = self.random
        if depth == 0:
            name = random.choice(self.names)
            return Variable(name) if random.random() < 0.7 else Constant(self.keep(name, self.value()))
        function = random.choice(list(ARITIES))
        return call(function, *[self.formula(depth - 1) for _ in range(ARITIES[function])])

    def constraint(self, name: str, within_list: bool = False) -> Constraint:
        random = self.random
        choice = random.random()
        if choice < 0.04 and not within_list:
            return Constraint("absent")
        if choice < 0.1 and not within_list:
            return Constraint("exists", None, random.choice([None, *Kind]))
        if choice < 0.2 and self.lists and not within_list:
            element = self.constraint(name, within_list=True)
            return Constraint(
                "has", Constraint("not", element, element.demanded) if random.random() < 0.15 else element
            )
        if choice < 0.45 and self.texts:
            pattern = random.choice(PATTERNS)
            operator = random.choice(("starts with", "ends with", "contains", "matches", pattern))
            if operator in PATTERNS:
                return self.pattern(name, operator)
            if operator == "matches":
                constant = random.choice(GLOBS)
                self.constants[name].append(constant.replace("**", "a/b").replace("*", "a"))
            else:
                constant = self.keep(name, self.text())
                if random.random() < 0.1:
                    constant = self.keep(name, constant.encode())
            return Constraint(operator, constant)
        if choice < 0.6:
            low, high = self.number(), self.number()
            if random.random() < 0.2:
                low, high = self.text(), self.text()
            self.constants[name] += [low, high]
            return Constraint("between", (low, high), self.demand(low, high))
        if choice < 0.7:
            values = tuple(self.keep(name, self.value()) for _ in range(random.randint(1, 3)))
            return Constraint("in", values)
        value = self.keep(name, self.value())
        return Constraint(random.choice(COMPARISONS), value, self.demand(value))

    def pattern(self, name: str, operator: str) -> Constraint:
        random = self.random
        if operator == "like":
            constant = random.choice(LIKES)
            shown = [constant.replace("!", "").replace("%", two).replace("_", one) for one, two in ("ab", "/a")]
        elif operator == "regex":
            constant, shown = random.choice(list(REGEXES.items()))
        elif operator == IN_NETWORK:
            constant, shown = random.choice(list(NETWORKS.items()))
        else:
            text = self.text() + random.choice(("", "k", "Σ"))
            constant, shown = variants_of(text), (text, text.upper(), text.lower())
        self.constants[name] += shown
        return Constraint(operator, constant)

    def demand(self, *values) -> Kind | None:
        if self.random.random() > 0.15:
            return None
        if all(type(value) in (int, float) for value in values):
            return self.random.choice((Kind.INT, Kind.FLOAT))
        return {bool: Kind.BOOL, str: Kind.STRING, datetime: Kind.TIME, bytes: Kind.BYTES}[type(values[0])]

    def keep(self, name, value):
        self.constants[name].append(value)
        return value

    def value(self):
        choice = self.random.random()
        if choice < 0.5:
            return self.number()
        if choice < 0.85:
            return self.text()
        if choice < 0.9:
            return self.random.random() < 0.5
        if choice < 0.95:
            return self.random.choice(TIMES)
        return self.text().encode()

    def number(self):
        return self.random.choice(NUMBERS if self.random.random() < 0.9 else FAR_NUMBERS)

    def text(self) -> str:
        letters = LETTERS if self.random.random() < 0.95 else FAR_LETTERS
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(0, 3)))

    # Notifications

    def notification(self) -> Notification:
        values = {}
        for name in self.names:
            if self.random.random() < 0.2:
                continue
            values[name] = self.near(name)
        return Notification.of_values(values)

    def near(self, name):
        if self.lists and self.random.random() < 0.2:
            first = self.near_scalar(name)
            return tuple([first, *self.alike(first, name)][: self.random.randint(0, 3)])
        return self.near_scalar(name)

    def alike(self, first, name):
        found = [self.near_scalar(name) for _ in range(3)]
        return [one for one in found if type(one) is type(first)]

    def near_scalar(self, name):
        constants = self.constants[name]
        if not constants or self.random.random() < 0.15:
            return self.value()
        return neighbour(self.random, self.random.choice(constants), constants)


def neighbour(random, value, others):
    """The value itself, or one close to it."""
    match value:
        case bool():
            return random.choice((value, not value))
        case int() | float():
            return random.choice([value, *numbers_around(value)])
        case str():
            return random.choice([value, *texts_around(random, value, others)])
        case bytes():
            return random.choice((value, value + b"\0", value[:-1], b"a" + value))
        case datetime():
            return value + timedelta(microseconds=random.choice((-1, 0, 1)))
    raise AssertionError(value)


def numbers_around(value):
    for whole in (math.floor(value), math.ceil(value), math.floor(value) - 1, math.floor(value) + 1):
        if INT_MIN <= whole <= INT_MAX:
            yield whole
    real = float(value)
    for near in (real, math.nextafter(real, math.inf), math.nextafter(real, -math.inf)):
        if math.isfinite(near):
            yield near


def texts_around(random, value, others):
    texts = [other for other in others if isinstance(other, str)]
    return (
        value + "\0",
        value + "a",
        "a" + value,
        value[:-1],
        value + "/b",
        value.swapcase(),
        random.choice(texts) + value,
        value + random.choice(texts),
    )


def pair(random, *, computed: bool = False) -> tuple[Maker, Expression, Expression]:
    """Two expressions that have something to do with each other, and the maker that knows their constants."""
    maker = Maker(random, texts=random.random() < 0.5, lists=random.random() < 0.5, computed=computed)
    choice = random.random()
    if choice < 0.3:
        return maker, maker.conjunction(), maker.conjunction()
    if choice < 0.5:
        return maker, maker.expression(), maker.expression()
    first = maker.conjunction() if choice < 0.8 else maker.expression(1)
    second = nudged(random, first)
    if random.random() < 0.5:
        second = And((second, maker.condition()))
    return (maker, first, second) if random.random() < 0.5 else (maker, second, first)


def nudged(random, expression: Expression) -> Expression:
    """The same expression with some constants moved to neighbours: most mistakes hide at the edges."""
    match expression:
        case And(operands):
            return And(tuple(nudged(random, operand) for operand in operands))
        case Or(operands):
            return Or(tuple(nudged(random, operand) for operand in operands))
        case Not(operand):
            return Not(nudged(random, operand))
        case Condition(attribute, Constraint(operator, operand, demanded)) if operator in COMPARISONS:
            return Condition(attribute, Constraint(operator, _moved(random, operand), demanded))
        case Condition(attribute, Constraint("between", (low, high), demanded)):
            return Condition(
                attribute, Constraint("between", (_moved(random, low), _moved(random, high)), demanded)
            )
        case _:
            return expression


def _moved(random, constant):
    return neighbour(random, constant, [constant]) if random.random() < 0.4 else constant


def random_advertisement(maker: Maker) -> Advertisement:
    """Up to four alternatives, each a whole expression about one attribute, as far as it can be advertised."""
    sides: dict[str, ValueSet] = {}
    for _ in range(maker.random.randint(1, 4)):
        name = maker.random.choice(maker.names)
        one = Maker(maker.random, (name,), texts=maker.texts, lists=maker.lists).expression()
        values = union(box.side(name) for box in Filter.from_expression(one).conjunctions)
        sides[name] = sides.get(name, EMPTY) | values
    return Advertisement(sides)
