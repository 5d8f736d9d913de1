"""What can be wrong with Spark itself, or with what a job was given."""

from __future__ import annotations

from palio.model.errors import PalioError

_ADVICE = (
    'Leave such out with invalid="skip" (palio spark match: --quarantine); palio.spark.unreadable lists them.'
)


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


class WrongOption(PalioError):
    """An option of `format("palio")`, or of a job, that cannot be so."""

    option: str
    reason: str

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"The option {option!r} cannot be so: {reason}", option=option, reason=reason)


class WrongSchema(PalioError):
    """A column that no attribute can be read into."""

    column: str
    reason: str

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"The column {column!r} cannot be read: {reason}", column=column, reason=reason)


class DamagedEvent(PalioError):
    """Something in a journal or a lake that is no notification."""

    journal: str
    sequence: int

    def __init__(self, journal: str, sequence: int, reason: str) -> None:
        super().__init__(
            f"Sequence {sequence} of the journal {journal!r} cannot be read: {reason} "
            "`palio spark archive` sets such events aside, with the reason.",
            journal=journal,
            sequence=sequence,
        )


class DataLoss(PalioError):
    """What was to be read is not in the journal any more."""

    journal: str
    wanted: int
    first: int

    def __init__(self, journal: str, wanted: int, first: int) -> None:
        super().__init__(
            f"The journal {journal!r} was to be read from {wanted} on, but begins with {first} by now. "
            "Read what was archived with `palio.spark.history`, or do without it: failOnDataLoss=false.",
            journal=journal,
            wanted=wanted,
            first=first,
        )


class JournalMissing(PalioError):
    """Journals of brokers that cannot be reached now."""

    brokers: tuple[str, ...]

    def __init__(self, brokers: tuple[str, ...]) -> None:
        super().__init__(
            f"The journals of {', '.join(brokers)} cannot be reached now. Try again when they can; let the "
            f"network forget what is gone for good (`palio forget {brokers[0]} --yes`); or do without them: "
            "failOnDataLoss=false, or `palio spark archive --lossy`.",
            brokers=brokers,
        )


class NameTaken(PalioError):
    """A durable subscription of a name that was to be new."""

    name: str

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is a durable subscription {name!r} already, which does not begin where the lake ends. "
            "Choose another name, or end that one: palio spark reach-back --anew.",
            name=name,
        )


class MissingColumn(PalioError):
    """A table without a column that it must have."""

    table: str
    column: str

    def __init__(self, table: str, column: str, there: list[str]) -> None:
        super().__init__(
            f"The table of {table} needs a column {column!r}; it has {', '.join(there) or 'none'}. "
            "Name the one that is meant, or rename it with withColumnRenamed.",
            table=table,
            column=column,
        )


class BadSubscriptions(PalioError):
    """Subscriptions whose filters cannot be read; `id` and `reason` are of one of them."""

    count: int
    id: str
    reason: str

    def __init__(self, count: int, id: str, reason: str) -> None:
        many = "1 filter" if count == 1 else f"{count:,} filters"
        super().__init__(
            f"{many} cannot be read, for example that of subscription {id}: {reason} {_ADVICE}",
            count=count,
            id=id,
            reason=reason,
        )


class BadEvent(PalioError):
    """An event whose payload is no encoded notification."""

    id: object
    reason: str

    def __init__(self, id: object, reason: str, advice: str = _ADVICE) -> None:
        super().__init__(
            f"Event {id} cannot be read: {reason} {advice}",
            id=id,
            reason=reason,
        )


class DoubledSubscriptions(PalioError):
    """Several subscriptions with one id, where the id has to tell them apart."""

    id: object

    def __init__(self, id: object) -> None:
        super().__init__(
            f"The subscription id {id!r} is there more than once; from run to run ids must be unique.", id=id
        )


class RunsChanged(PalioError):
    """Another run was committed meanwhile."""

    place: str
    run: int

    def __init__(self, place: str, run: int) -> None:
        super().__init__(
            f"Another run {run} has been written to {place} meanwhile; start again, it will cost what is new.",
            place=place,
            run=run,
        )


class RunsDamaged(PalioError):
    """A folder that does not hold the runs that it should."""

    place: str
    reason: str

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"The matches in {place} cannot be read: {reason}", place=place, reason=reason)


class WrongCheckpoint(PalioError):
    """A folder in which this run cannot go on."""

    place: str
    reason: str

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(
            f"This cannot go on in the checkpoint {place}: {reason} "
            "Name another folder, or remove this one to begin anew.",
            place=place,
            reason=reason,
        )


class SourceChanged(PalioError):
    """What a job began with is not as it was any more."""

    place: str
    reason: str

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(
            f"{place} is not what the job began with: {reason} Remove the checkpoint to begin anew.",
            place=place,
            reason=reason,
        )


class UnknownInput(PalioError):
    """A place from which a job cannot read."""

    place: str

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} cannot be read: {reason}", place=place)


class TooManyPatterns(PalioError):
    """More patterns than one stream can take with it; sizes in bytes, packed."""

    limit: int
    got: int

    def __init__(self, *, limit: int, got: int) -> None:
        super().__init__(
            f"These patterns take {got:,} bytes, and one stream takes at most {limit:,} with it. "
            "Look for them in several streams.",
            limit=limit,
            got=got,
        )


class NothingThere(PalioError):
    """A job that would have nothing to say; `what` there is none of."""

    what: str
    place: str
    reason: str

    def __init__(self, what: str, place: str, reason: str) -> None:
        where = f" in {place}" if place else ""
        super().__init__(f"There are no {what}{where}: {reason}", what=what, place=place, reason=reason)


class JobFailed(PalioError):
    """Spark ended a job; `reason` is what its task said, and `advice` what is to be done about it.

    `error` is the name of the error of ours that a task raised, if it was one.
    """

    reason: str
    error: str

    def __init__(self, reason: str, advice: str = "", error: str = "") -> None:
        told = f"The job failed: {reason if reason.endswith(('.', '!', '?')) else f'{reason}.'}"
        super().__init__(f"{told} {advice}" if advice else told, reason=reason, error=error)
