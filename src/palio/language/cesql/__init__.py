"""CloudEvents SQL (CESQL 1.0): `reader` makes a formula of the text, `compiling` a filter of the formula."""

from palio.language.cesql.compiling import parse_cesql
from palio.language.cesql.reader import read_cesql

__all__ = ["parse_cesql", "read_cesql"]
