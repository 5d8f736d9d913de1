"""What can be wrong with Spark itself, or with what a job was given."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model.errors import PalioError

_ADVICE = (
    'Leave such out with invalid="skip" (palio spark match: --quarantine); palio.spark.unreadable lists them.'
)


class SparkUnavailable(PalioError):
    """Spark could not be started or reached."""

    master: str
    reason: str
    sentence = "Spark at {master!r} cannot be used: {reason}"


class JavaMissing(PalioError):
    """There is no Java that Spark runs on; `found` is the one that there is."""

    found: str | None = None

    def sentence(self) -> str:
        there = f"the one here is {self.found}" if self.found else "there is none here"
        return (
            f"Spark needs Java 17 or later, and {there}: install one (on Debian: "
            "apt-get install default-jre-headless) or let JAVA_HOME name its folder; `palio doctor` checks it."
        )


class WrongOption(PalioError):
    """An option of `format("palio")`, or of a job, that cannot be so."""

    option: str
    reason: str
    sentence = "The option {option!r} cannot be so: {reason}"


class WrongSchema(PalioError):
    """A column that no attribute can be read into."""

    column: str
    reason: str
    sentence = "The column {column!r} cannot be read: {reason}"


class DataLoss(PalioError):
    """What was to be read is not in the journal any more."""

    journal: str
    wanted: int
    first: int
    sentence = (
        "The journal {journal!r} was to be read from {wanted} on, but begins with {first} by now. Read what "
        "was archived with `palio.spark.history`, or do without it: failOnDataLoss=false."
    )


class JournalForked(PalioError):
    """What was read of a journal is not what it has now: it came back older, and gave sequences again.

    Up to `fork` both are the same; None where nobody can tell, as whoever read it knew of no lineages.
    """

    journal: str
    position: int
    fork: int | None
    head: InitVar[int] = 0

    def sentence(self, head: int) -> str:
        if self.fork is None:
            return (
                f"The journal {self.journal!r} ends with {head}, and was read up to {self.position}: it came "
                "back older than it was. From where on it is another one cannot be told, as an earlier version "
                "of Palio has written down how far it was read. Begin anew: in another lake or folder, or with "
                "another checkpoint."
            )
        return (
            f"The journal {self.journal!r} came back older than it was: what is wanted of it up to "
            f"{self.position} is another one's after {self.fork}. Archive it, if that is for a lake "
            "(`palio spark archive` goes on there), or look anew."
        )


class JournalMissing(PalioError):
    """Journals of brokers that cannot be reached now."""

    brokers: tuple[str, ...]

    def sentence(self) -> str:
        return (
            f"The journals of {', '.join(self.brokers)} cannot be reached now. Try again when they can; let "
            f"the network forget what is gone for good (`palio forget {self.brokers[0]} --yes`); or do without "
            "them: failOnDataLoss=false, or `palio spark archive --lossy`."
        )


class NameTaken(PalioError):
    """A durable subscription of a name that was to be new."""

    name: str
    sentence = (
        "There is a durable subscription {name!r} already, which does not begin where the lake ends. Choose "
        "another name, or end that one: palio spark reach-back --anew."
    )


class MissingColumn(PalioError):
    """A table without a column that it must have."""

    table: str
    column: str
    there: InitVar[list[str]]

    def sentence(self, there: list[str]) -> str:
        return (
            f"The table of {self.table} needs a column {self.column!r}; it has {', '.join(there) or 'none'}. "
            "Name the one that is meant, or rename it with withColumnRenamed."
        )


class BadSubscriptions(PalioError):
    """Subscriptions whose filters cannot be read; `id` and `reason` are of one of them."""

    count: int
    id: str
    reason: str

    def sentence(self) -> str:
        many = "1 filter" if self.count == 1 else f"{self.count:,} filters"
        return f"{many} cannot be read, for example that of subscription {self.id}: {self.reason} {_ADVICE}"


class BadEvent(PalioError):
    """An event whose payload is no encoded notification."""

    id: object
    reason: str
    advice: InitVar[str] = _ADVICE
    sentence = "Event {id} cannot be read: {reason} {advice}"


class DoubledSubscriptions(PalioError):
    """Several subscriptions with one id, where the id has to tell them apart."""

    id: object
    sentence = "The subscription id {id!r} is there more than once; from run to run ids must be unique."


class RunsChanged(PalioError):
    """Another run was committed meanwhile."""

    place: str
    run: int
    sentence = "Another run {run} has been written to {place} meanwhile; start again, it will cost what is new."


class RunsDamaged(PalioError):
    """A folder that does not hold the runs that it should."""

    place: str
    reason: str
    sentence = "The matches in {place} cannot be read: {reason}"


class WrongCheckpoint(PalioError):
    """A folder in which this run cannot go on."""

    place: str
    reason: str
    sentence = (
        "This cannot go on in the checkpoint {place}: {reason} Name another folder, or remove this one to "
        "begin anew."
    )


class SourceChanged(PalioError):
    """What a job began with is not as it was any more."""

    place: str
    reason: str
    sentence = "{place} is not what the job began with: {reason} Remove the checkpoint to begin anew."


class UnknownInput(PalioError):
    """A place from which a job cannot read."""

    place: str
    reason: InitVar[str]
    sentence = "{place} cannot be read: {reason}"


class TooManyPatterns(PalioError, kw_only=True):
    """More patterns than one stream can take with it; sizes in bytes, packed."""

    limit: int
    got: int
    sentence = (
        "These patterns take {got:,} bytes, and one stream takes at most {limit:,} with it. Look for them in "
        "several streams."
    )


class NothingThere(PalioError):
    """A job that would have nothing to say; `what` there is none of."""

    what: str
    place: str
    reason: str

    def sentence(self) -> str:
        where = f" in {self.place}" if self.place else ""
        return f"There are no {self.what}{where}: {self.reason}"


class JobFailed(PalioError):
    """Spark ended a job; `reason` is what its task said, and `advice` what is to be done about it.

    `error` is the name of the error of ours that a task raised, if it was one.
    """

    reason: str
    advice: InitVar[str] = ""
    error: str = ""

    def sentence(self, advice: str) -> str:
        told = f"The job failed: {self.reason}{'' if self.reason.endswith(('.', '!', '?')) else '.'}"
        return f"{told} {advice}" if advice else told
