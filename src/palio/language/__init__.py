"""Other tongues: the filter dialects of others, compiled to the one `Filter`.

A dialect is a function from its own notation to a `Filter`, without any I/O. What it cannot say exactly it
refuses, with the path of what is wrong.
"""

from palio.language.errors import UnknownDialect, WrongExpression
from palio.language.subscriptions_api import DIALECTS, read_filters

__all__ = ["DIALECTS", "UnknownDialect", "WrongExpression", "read_filters"]
