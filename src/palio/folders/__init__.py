"""Folders as a way in and out: files that are put into one are published, what a subscription gets is written
into another.

It is a program like those of users: all it needs of a broker is its client. What is in here is how files are
taken, settled and written so that a crash loses none and doubles none."""

from palio.folders.errors import FileChanging, FolderInUse, FolderUnusable, SameFolder, UnusableFile
from palio.folders.taking import InFolder, TakenFile
from palio.folders.watching import FileOutcome, FolderWatch
from palio.folders.writing import OutFolder

__all__ = [
    "FileChanging",
    "FileOutcome",
    "FolderInUse",
    "FolderUnusable",
    "FolderWatch",
    "InFolder",
    "OutFolder",
    "SameFolder",
    "TakenFile",
    "UnusableFile",
]
