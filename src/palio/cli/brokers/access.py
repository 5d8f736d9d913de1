"""Which access folder a command means: that of a broker's settings, or one that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from palio.broker.settings import load
from palio.cli.program.dressing import option

Folder = Annotated[
    Path | None, option("FOLDER", "Where tokens and rights are, if not in the data folder.", "--folder")
]
Data = Annotated[str | None, option("FOLDER", "The broker's data folder; ./palio-data.", "--data")]
Config = Annotated[str | None, option("FILE", "The broker's settings, which say where.", "--config", "-c")]


def access_folder(folder: Path | None, data: str | None, config: str | None) -> Path:
    """The folder that is meant. Raises `WrongSetting`."""
    return folder if folder is not None else load(config, flags={"data": data}).access_folder
