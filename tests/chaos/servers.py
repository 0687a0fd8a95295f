"""Servers that can be restarted while a study runs: PostgreSQL, Redis, Optuna's gRPC proxy."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.study import process_study
from tests.study.process_study import free_port
from tests.study.process_study import wait_for


@dataclass(frozen=True)
class Server:
    """A storage's address, and how to restart what is behind it; None if nothing is."""

    address: str
    restart: Callable[[], None] | None = None


@contextlib.contextmanager
def opened(kind: str, folder: Path) -> Iterator[Server]:
    """Yield a storage of this kind, on servers of its own."""
    with contextlib.ExitStack() as stack:
        match kind.partition("_"):
            case "grpc", _, behind:
                server = stack.enter_context(opened(behind, folder))
                yield stack.enter_context(_proxy(server.address))
            case "postgresql", _, _:
                yield stack.enter_context(_postgresql(folder))
            case "redis", _, _:
                yield stack.enter_context(_redis(folder))
            case "journal", _, _:
                yield Server(f"file:{folder}/study.journal")
            case _:
                yield Server(f"sqlite:///{folder}/study.db")


@contextlib.contextmanager
def _proxy(behind: str) -> Iterator[Server]:
    port = free_port()
    running: list[BaseProcess] = []

    def restart() -> None:
        for server in running:
            process_study.kill(server)
        running[:] = [process_study.serve(behind, port)]
        wait_for(port)

    restart()
    try:
        yield Server(f"grpc:{port}", restart)
    finally:
        for server in running:
            process_study.kill(server)


@contextlib.contextmanager
def _redis(folder: Path) -> Iterator[Server]:
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    running = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield Server(f"redis://127.0.0.1:{port}/0")
    finally:
        running.kill()
        running.wait()


@contextlib.contextmanager
def _postgresql(folder: Path) -> Iterator[Server]:
    """Yield a cluster as Debian's package makes it; PostgreSQL refuses to run as root."""
    port, home = free_port(), folder / "postgresql"
    home.mkdir()
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if user:
        for path in (folder, *folder.parents[:-1]):
            path.chmod(path.stat().st_mode | 0o011)  # others have to get there
        shutil.chown(home, "postgres")
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c max_connections=300"

    def run(program: str, *arguments: str) -> None:
        command = [*user, str(programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=home)

    def control(*arguments: str) -> None:
        run("pg_ctl", "-D", f"{home}/data", "-l", f"{home}/log", "-o", options, "-w", *arguments)

    run("initdb", "-D", f"{home}/data", "-U", "daub", "-A", "trust")
    control("start")
    try:
        run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "daub", "daub")
        address = f"postgresql+psycopg2://daub@127.0.0.1:{port}/daub"
        yield Server(address, lambda: control("-m", "fast", "restart"))
    finally:
        control("-m", "immediate", "stop")
