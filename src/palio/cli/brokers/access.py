"""Which access folder a command means: that of a broker's settings, or one that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palio.broker.settings import load

Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="FOLDER", help="Where tokens and rights are, if not in the data folder."),
]
Data = Annotated[
    str | None, typer.Option("--data", metavar="FOLDER", help="The broker's data folder; ./palio-data.")
]
Config = Annotated[
    str | None, typer.Option("--config", "-c", metavar="FILE", help="The broker's settings, which say where.")
]


def access_folder(folder: Path | None, data: str | None, config: str | None) -> Path:
    """The folder that is meant. Raises `WrongSetting`."""
    return folder if folder is not None else load(config, flags={"data": data}).access_folder
