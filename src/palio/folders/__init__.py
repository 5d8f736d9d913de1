"""Folders as a way in and out: files that are put into one are published, what a subscription gets is written
into another.

It is a program like those of users: all it needs of a broker is its client. What is in here is how files are
taken, settled and written so that a crash loses none and doubles none."""

from palio.folders.errors import (
    FileChanging,
    FolderInUse,
    FolderUnusable,
    PeerAway,
    SameFolder,
    UnusableFile,
    WrongFolderName,
    WrongPeer,
)
from palio.folders.operations import OperationResult, SimplePeer, operation_of
from palio.folders.receiving import FolderSubscriptions
from palio.folders.taking import InFolder, TakenFile
from palio.folders.watching import FileOutcome, FolderWatch
from palio.folders.writing import OutFolder

__all__ = [
    "FileChanging",
    "FileOutcome",
    "FolderInUse",
    "FolderSubscriptions",
    "FolderUnusable",
    "FolderWatch",
    "InFolder",
    "OperationResult",
    "OutFolder",
    "PeerAway",
    "SameFolder",
    "SimplePeer",
    "TakenFile",
    "UnusableFile",
    "WrongFolderName",
    "WrongPeer",
    "operation_of",
]
