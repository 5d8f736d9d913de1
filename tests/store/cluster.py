"""A PostgreSQL of our own, in a folder that goes away: reached by a socket in it, so that no port is taken."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

CANDIDATES = Path("/usr/lib/postgresql")


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs; Debian does not have it on the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(CANDIDATES.glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name))
    return versions[-1].parent if versions else None


def reason_to_skip() -> str | None:
    """Why there can be no cluster here, if so."""
    if find_programs() is None:
        return "PostgreSQL is not installed (make postgresql)"
    if os.geteuid() == 0 and not _has_user():
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


def _has_user() -> bool:
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return False
    return True


class Cluster:
    """A server that can be stopped and started again."""

    def __init__(self, *, fsync: bool = False) -> None:
        programs = find_programs()
        assert programs is not None
        self._programs = programs
        self._fsync = "on" if fsync else "off"  # off: no test takes the power away
        self.folder = Path(tempfile.mkdtemp(prefix="palio-pg-"))
        self._options: dict[str, Any] = {"cwd": self.folder, "stdout": subprocess.DEVNULL}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.data = self.folder / "data"
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def _run(self, program: str, *words: str) -> None:
        subprocess.run([str(self._programs / program), *words], check=True, **self._options)

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync={self._fsync}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", str(self.data), "-w", "-l", str(log), "-o", settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str) -> list[Any]:
        """As the administrator."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def emptied(self, database: str) -> str:
        """The URL of a database with nothing in it, whose last users are gone: sooner had than a new one."""
        if not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
            self.execute(f"CREATE DATABASE {database}")
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url(database)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
