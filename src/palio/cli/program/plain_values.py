"""Values of options that are plainly what they have to be, such as text for text, and need no validator.

Typer has every value of an option validated by pydantic, which takes as long to load as a fourth of all that is
done to publish an event. Here a value that can be nothing else is taken as it is. Every other one is left to
Typer, which then says what is wrong with it. A Typer that has no such validator is left as it is.
"""

from __future__ import annotations

from typing import Any, TypeGuard

_DIGITS = 15  # of a number that every type of numbers holds exactly
NOT_PLAIN = object()


class PlainFirst:
    """Stands for the validator of one option, and asks for it where a value is not plain."""

    def __init__(self, parameter: Any) -> None:
        self._validator = parameter.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        plain = plain_value(value, param)
        return self._validator().coerce(value, param=param, ctx=ctx) if plain is NOT_PLAIN else plain


def read_plainly(parameters: list[Any]) -> None:
    """Let options load no validator for plain values."""
    for parameter in parameters:
        validated = hasattr(parameter, "get_runtime_param") and hasattr(parameter, "type_descriptor")
        if validated and "get_runtime_param" not in vars(parameter):  # a group is called again
            first = PlainFirst(parameter)
            parameter.get_runtime_param = lambda first=first: first


def plain_value(value: Any, parameter: Any) -> Any:
    """What Typer would make of the value, or `NOT_PLAIN` if that takes more than a look."""
    several = parameter.multiple or parameter.nargs == -1
    if value is None:
        return () if several else None
    kind, settings = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
    if getattr(settings, "parser", None) is not None:
        return NOT_PLAIN
    if several:
        return list(value) if kind == list[str] and all(map(_is_text, value)) else NOT_PLAIN
    if kind is str and _is_text(value):
        return value
    if kind is int and _is_text(value) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    return value if kind is int and type(value) is int and _is_in_range(value, settings) else NOT_PLAIN


def _is_text(value: Any) -> TypeGuard[str]:
    """Whether it is a text in which nothing can be wrong, such as half of a character."""
    return type(value) is str and value.isprintable()


def _is_in_range(number: int, settings: Any) -> bool:
    return (settings.min is None or settings.min <= number) and (settings.max is None or number <= settings.max)
