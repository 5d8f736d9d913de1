"""CloudEvents SQL (CESQL 1.0): `reader` makes a formula of a text, `compiling` a filter of it; and back."""

from palio.language.cesql.compiling import parse_cesql
from palio.language.cesql.reader import read_cesql
from palio.language.cesql.writing import write_expression

__all__ = ["parse_cesql", "read_cesql", "write_expression"]
