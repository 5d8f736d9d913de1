"""What can be wrong with Spark itself, or with what a job was given."""

from __future__ import annotations

from palio.model.errors import PalioError


class SparkUnavailable(PalioError):
    """Spark could not be started or reached."""

    master: str
    reason: str

    def __init__(self, master: str, reason: str) -> None:
        super().__init__(f"Spark at {master!r} cannot be used: {reason}", master=master, reason=reason)


class JavaMissing(PalioError):
    """There is no Java that Spark runs on; `found` is the one that there is."""

    found: str | None

    def __init__(self, found: str | None = None) -> None:
        there = f"the one here is {found}" if found else "there is none here"
        super().__init__(
            f"Spark needs Java 17 or later, and {there}: install one (on Debian: "
            "apt-get install default-jre-headless) or let JAVA_HOME name its folder; `palio doctor` checks it.",
            found=found,
        )


class MissingColumn(PalioError):
    """A table without a column that it must have."""

    table: str
    column: str

    def __init__(self, table: str, column: str, there: list[str]) -> None:
        super().__init__(
            f"The table of {table} needs a column {column!r}; it has {', '.join(there) or 'none'}. "
            f"Rename the one that is meant with withColumnRenamed.",
            table=table,
            column=column,
        )
