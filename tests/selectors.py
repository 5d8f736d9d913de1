"""Message selectors and messages at random, and what a selector says of a message, by the tables of SQL.

A selector is a tree of tuples, drawn together with its text. What it says is found by going through the tree
with the three truth values True, False and None, for unknown; nothing of the package has a part in it but
`Filter.matches`, which is compared with it.
"""

import re
from fractions import Fraction

from palio import Filter, FilterTooLarge, Notification
from palio.language import UnwritableCondition, read_filter, write_filter

NAMES = ("a", "b", "c", "JMSPriority")
INTEGERS = (0, 1, 2, 3, -1, 7, 100, 2**53 + 1, 2**63 - 1, -(2**63))
REALS = (0.0, 0.5, 1.0, 2.5, -1.5, 1e300, 9007199254740992.0)
STRINGS = ("", "a", "ab", "A_", "it's", "a%", "\U0001f955", "b")
PATTERNS = (
    ("a%", None),
    ("_", None),
    ("%b", None),
    ("A!_", "!"),
    ("a~%", "~"),
    ("%", None),
    ("%'%", None),
    ("a_", "!"),
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


# Drawing


def selector(random, depth: int = 3):
    """A condition."""
    choice = random.random()
    if depth == 0 or choice < 0.35:
        return test(random)
    if choice < 0.5:
        return "not", selector(random, depth - 1)
    join = "and" if choice < 0.75 else "or"
    return join, selector(random, depth - 1), selector(random, depth - 1)


def test(random):
    choice = random.random()
    if choice < 0.1:
        return "is true", random.choice(NAMES)
    if choice < 0.2:
        return random.choice(("null", "not null")), random.choice(NAMES)
    if choice < 0.3:
        return "like", random.choice(NAMES), random.choice(PATTERNS), random.random() < 0.5
    if choice < 0.4:
        some = [constant(random) for _ in range(random.randint(1, 3))]
        if random.random() < 0.6:
            some = [("value", random.choice(STRINGS)) for _ in some]
        return "in", value(random, 0), some, random.random() < 0.5
    if choice < 0.5:
        return "between", value(random, 1), value(random, 0), value(random, 0), random.random() < 0.5
    if choice < 0.55:
        return "equals", test(random), random.choice(("=", "<>")), random.random() < 0.5
    return "compare", random.choice(COMPARISONS), value(random, random.choice((0, 0, 1, 2))), value(random, 0)


def value(random, depth: int):
    if depth == 0:
        return ("name", random.choice(NAMES)) if random.random() < 0.6 else constant(random)
    if random.random() < 0.2:
        return random.choice(("minus", "plus")), value(random, depth - 1)
    return "arithmetic", random.choice("+-*/%"), value(random, depth - 1), value(random, depth - 1)


def constant(random):
    kinds = (INTEGERS, INTEGERS, REALS, STRINGS, STRINGS, (True, False))
    return "value", random.choice(random.choice(kinds))


def message(random) -> dict:
    """The properties of a message: any may be absent, and of a type that nobody expects."""
    found = {}
    for name in NAMES:
        if random.random() < 0.75:
            kinds = (INTEGERS, INTEGERS, REALS, STRINGS, STRINGS, (True, False), ((), ("a",)), (b"a",))
            found[name] = random.choice(random.choice(kinds))
    return found


# Its text


def written(random, node) -> str:
    """The text of a selector; keywords and spaces as they come."""
    match node:
        case "not", inner:
            return f"{word(random, 'NOT')} ({written(random, inner)})"
        case ("and" | "or") as join, left, right:
            return f"({written(random, left)}){space(random)}{word(random, join)} ({written(random, right)})"
        case "is true", name:
            return named(random, name)
        case ("null" | "not null") as what, name:
            return f"{named(random, name)} {word(random, 'is')} {word(random, what)}"
        case "like", name, (pattern, escape), inverted:
            behind = "" if escape is None else f" {word(random, 'escape')} {quoted(escape)}"
            like = f"{maybe_not(random, inverted)}{word(random, 'like')}"
            return f"{named(random, name)} {like} {quoted(pattern)}{behind}"
        case "in", one, several, inverted:
            listed = ", ".join(written(random, other) for other in several)
            return f"{written(random, one)} {maybe_not(random, inverted)}{word(random, 'in')} ({listed})"
        case "between", one, low, high, inverted:
            ends = f"{written(random, low)} {word(random, 'and')} {written(random, high)}"
            return f"{written(random, one)} {maybe_not(random, inverted)}{word(random, 'between')} {ends}"
        case "equals", inner, sign, truth:
            return f"({written(random, inner)}) {sign} {word(random, str(truth))}"
        case "compare", sign, left, right:
            return f"{written(random, left)}{space(random)}{sign}{space(random)}{written(random, right)}"
        case "name", name:
            return named(random, name)
        case ("minus" | "plus") as sign, inner:
            return f"{'-' if sign == 'minus' else '+'}({written(random, inner)})"
        case "arithmetic", sign, left, right:
            return f"({written(random, left)}) {sign} ({written(random, right)})"
        case "value", bool() as truth:
            return word(random, str(truth))
        case "value", str() as text:
            return quoted(text)
        case "value", int() as number:
            sign, size = "-" if number < 0 else "", abs(number)
            form = random.choice((str(size), str(size), f"{size}L", hex(size), f"0{size:o}" if size else "0"))
            return sign + form
        case "value", float() as number:
            return repr(number) + random.choice(("", "", "d", "F"))


def named(random, name: str) -> str:
    return random.choice((name, name, f"[{name}]", f'"{name}"'))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def word(random, keyword: str) -> str:
    return random.choice((keyword.upper(), keyword.lower(), keyword.title()))


def maybe_not(random, inverted: bool) -> str:
    return word(random, "not") + " " if inverted else ""


def space(random) -> str:
    return random.choice((" ", "\t", "  ", "\n"))


# What it says


def truth(node, properties):
    """True, False or None."""
    match node:
        case "not", inner:
            return negated(truth(inner, properties))
        case "and", left, right:
            both = (truth(left, properties), truth(right, properties))
            return False if False in both else None if None in both else True
        case "or", left, right:
            both = (truth(left, properties), truth(right, properties))
            return True if True in both else None if None in both else False
        case "is true", name:
            found = properties.get(name)
            return found if isinstance(found, bool) else None
        case "null", name:
            return name not in properties
        case "not null", name:
            return name in properties
        case "like", name, (pattern, escape), inverted:
            found = properties.get(name)
            said = None if not isinstance(found, str) else alike(found, pattern, escape)
            return negated(said) if inverted else said
        case "in", one, several, inverted:
            found = worth(one, properties)
            answers = [compare("=", found, worth(other, properties)) for other in several]
            if all(other[0] == "value" and isinstance(other[1], str) for other in several) and one[0] == "name":
                answers = [None if not isinstance(found, str) else found == other[1] for other in several]
            said = True if True in answers else None if None in answers else False
            return negated(said) if inverted else said
        case "between", one, low, high, inverted:
            found = worth(one, properties)
            ends = (compare(">=", found, worth(low, properties)), compare("<=", found, worth(high, properties)))
            said = False if False in ends else None if None in ends else True
            return negated(said) if inverted else said
        case "equals", inner, sign, wanted:
            said = truth(inner, properties)
            return None if said is None else (said == wanted) == (sign == "=")
        case "compare", sign, left, right:
            return compare(sign, worth(left, properties), worth(right, properties))


def negated(said):
    return None if said is None else not said


def compare(sign: str, left, right):
    if left is None or right is None:
        return None
    kinds = [kind(left), kind(right)]
    if kinds[0] != kinds[1] or kinds[0] == "list" or (kinds[0] == "bool" and sign not in ("=", "<>")):
        return None
    if kinds[0] == "string":
        left, right = left.encode(), right.encode()
    order = (left > right) - (left < right)
    return order in {"=": (0,), "<>": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[sign]


def kind(found) -> str:
    if isinstance(found, bool):
        return "bool"
    return {int: "number", float: "number", str: "string", bytes: "bytes", tuple: "list"}[type(found)]


def worth(node, properties):
    """The value of what is computed; None if it has none."""
    match node:
        case "value", found:
            return found
        case "name", name:
            return properties.get(name)
        case ("minus" | "plus") as sign, inner:
            found = worth(inner, properties)
            if found is None or kind(found) != "number":
                return None
            return fitting(-Fraction(found) if sign == "minus" else Fraction(found), isinstance(found, float))
        case "arithmetic", sign, left, right:
            numbers = [worth(left, properties), worth(right, properties)]
            if any(one is None or kind(one) != "number" for one in numbers):
                return None
            real = any(isinstance(one, float) for one in numbers)
            first, second = (Fraction(float(one) if real else one) for one in numbers)
            if sign in "/%" and not second:
                return None
            if sign == "%":
                rest = abs(first) % abs(second)
                return fitting(-rest if first < 0 else rest, real)
            result = {"+": first + second, "-": first - second, "*": first * second, "/": first}[sign]
            return fitting(result / second if sign == "/" else result, real or sign == "/")


def fitting(number: Fraction, real: bool):
    if not real:
        return int(number) if -(2**63) <= number < 2**63 else None
    try:
        return float(number)
    except OverflowError:
        return None


def alike(text: str, pattern: str, escape: str | None) -> bool:
    made, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            made += re.escape(pattern[at])
        else:
            made += {"%": ".*", "_": "."}.get(character) or re.escape(character)
        at += 1
    return re.fullmatch(made, text, re.DOTALL) is not None


# Comparing


def check(random, messages: int = 10) -> None:
    """A selector drawn at random selects what makes it true, as it is and written in our own language.

    So does what it is written as again, if it is.
    """
    tree = selector(random)
    text = written(random, tree)
    try:
        filter = read_filter(text, "jms")
    except FilterTooLarge:
        return
    again = Filter.parse(str(filter))
    assert again == filter, f"{text!r} is {str(filter)!r}, which is read as {str(again)!r}."
    try:
        back = read_filter(write_filter(filter, "jms"), "jms")
    except UnwritableCondition:
        back = filter
    assert back == filter, f"{text!r} is written as {write_filter(filter, 'jms')!r}, which means {str(back)!r}."
    for _ in range(messages):
        properties = message(random)
        said = truth(tree, properties)
        selected = filter.matches(Notification(properties))
        assert selected == back.matches(Notification(properties))
        assert selected == (said is True), (
            f"{text!r} is {said} of {properties!r}; {str(filter)!r} says {selected}."
        )
