"""Patterns and events at random, drawn close to each other so that they meet."""

from palio import Pattern, PatternError
from tests.matching.patterns.definition import Event

LETTERS = "abc"
LOOPS = ["?", "*", "+", "{2,3}", "{1,2}", "{2,}"]


class Maker:
    """Makes patterns with every operator, over events with a letter `t`, a number `v` and a key `k`."""

    def __init__(self, random, *, guards: bool = True, window: int = 8, keys: bool = True):
        self.random = random
        self.guards = guards
        self.window = window
        self.keys = keys
        self.names: list[str] = []

    def pattern(self) -> Pattern:
        while True:
            self.names = []
            text = f"{self.shape(2)} within {self.random.randint(1, self.window)} us"
            if self.keys and self.random.random() < 0.4:
                text += " by k"
            text += self.random.choice(["", "", " consume own", " consume none", " select every", self.skip()])
            text += self.random.choice(["", " order time"])
            try:
                return Pattern.parse(text)
            except PatternError:
                continue

    def skip(self) -> str:
        return f" skip to {self.random.choice(['first', 'last'])} {self.random.choice(self.names)}"

    def shape(self, depth: int) -> str:
        choice = self.random.random()
        if depth == 0 or choice < 0.1:
            return self.step()
        if choice < 0.25:
            loop = f"{self.single()}{self.random.choice(LOOPS)}{self.random.choice(['', '?'])}"
            return f"{loop} until {self.single()}" if self.random.random() < 0.3 else loop
        if choice < 0.3:
            return f"{self.random.randint(2, 3)} × {self.single()}"
        if choice < 0.42:
            return f"({self.shape(depth - 1)} and {self.shape(depth - 1)})"
        if choice < 0.55:
            return f"({self.shape(depth - 1)} or {self.shape(depth - 1)})"
        text = self.shape(depth - 1)
        for _ in range(self.random.randint(1, 2)):
            if self.random.random() < 0.3:
                text += f" {self.random.choice(['then not', 'then not', 'not next'])} {self.single()}"
            else:
                text += f" {self.join()} {self.shape(depth - 1)}"
        return f"({text})"

    def join(self) -> str:
        word = self.random.choice(["then", "then", "next"])
        return f"{word} within {self.random.randint(1, 4)} us" if self.random.random() < 0.2 else word

    def single(self) -> str:
        return self.step() if self.random.random() < 0.7 else f"({self.step()} or {self.step()})"

    def step(self) -> str:
        earlier = list(self.names)
        name = f"S{len(self.names)}"
        self.names.append(name)
        conditions = [self.random.choice([f't = "{self.random.choice(LETTERS)}"', 't in ("a", "b")'])]
        if self.guards and earlier and self.random.random() < 0.3:
            other = self.random.choice(earlier)
            conditions.append(
                self.random.choice(
                    [
                        *(f"v > {other}.v", f"v < {other}.v * 2 - 1", f"v != {other}.v"),
                        *(f"v >= max({other}.v)", f"sum({other}.v) > 2", f"count({other}) < 2"),
                    ]
                )
            )
        elif self.guards and self.random.random() < 0.1:
            conditions.append(self.random.choice([f"v > sum({name}.v) - 1", f"count({name}) < 2"]))
        return f"{name}[{' and '.join(conditions)}]"

    def events(self, most: int = 7) -> list[Event]:
        """In the order of arrival; their times are in order as well, or anything between 0 and 9."""
        count = self.random.randint(0, most)
        times = [self.random.randint(0, 9) for _ in range(count)]
        if self.random.random() < 0.3:
            times = sorted(self.random.sample(range(10), count))
        return [
            Event(
                time,
                position,
                {
                    "t": self.random.choice(LETTERS),
                    "v": self.random.randint(0, 3),
                    "k": self.random.randint(0, 1),
                },
            )
            for position, time in enumerate(times)
        ]
