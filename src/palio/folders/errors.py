"""What can be wrong with folders and the files in them."""

from __future__ import annotations

from palio.model.errors import PalioError


class FolderInUse(PalioError):
    """A folder that another program watches, or writes to, already."""

    folder: str
    sentence = (
        "The folder {folder!r} is watched already, and one watcher is all that a folder may have; end the "
        "other one, or use another folder."
    )


class FolderUnusable(PalioError):
    """A folder in which files cannot be taken, moved or written."""

    folder: str
    reason: str
    sentence = "The folder {folder!r} cannot be used ({reason}); nothing that was in it is lost."


class SameFolder(PalioError):
    """The folder for what comes in is the one for what goes out."""

    folder: str
    sentence = (
        "{folder!r} cannot be both the folder for what comes in and for what goes out: what is written would "
        "be published again, for ever. Name two folders."
    )


class UnusableFile(PalioError):
    """A file that is not published, whatever is in it."""

    name: str
    reason: str
    sentence = "The file {name!r} is not published: {reason}"


class FileChanging(PalioError):
    """A file that is still being written, although it was taken."""

    name: str
    sentence = "The file {name!r} changed while it was read; it is read again once it stays the same."


class PeerAway(PalioError):
    """Nobody carries out operations now; what was asked for is asked again."""

    address: str
    reason: str
    sentence = "Operations cannot be carried out at {address} now ({reason}); they are tried again."


class WrongPeer(PalioError):
    """An address at which no operation can be carried out."""

    address: str
    sentence = (
        "{address!r} is no address for operations; name the HTTP port of the broker: http://127.0.0.1:7080."
    )


class WrongFolderName(PalioError):
    """A folder that a subscription cannot be written into."""

    name: str
    sentence = "{name!r} is no name of a folder here; a consumer is file:NAME, with letters, digits, - and _."
