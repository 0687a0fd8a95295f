"""Which process is dead is known for this machine only, and never guessed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optuna_daub.study import workers
from tests.study.table_study import in_new_process


def test_this_process_lives() -> None:
    assert not workers.is_dead(workers.this_worker())


def test_a_process_lives_until_it_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    machine, _, _ = workers.this_worker().split("|")
    worker = f"{machine}|{process.pid}|{workers._start_time(process.pid)}"
    assert not workers.is_dead(worker)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert workers.is_dead(worker), "a zombie trains nothing"
    process.communicate()
    assert workers.is_dead(worker)


@pytest.mark.parametrize("pid", [os.getppid(), os.getpid()])
def test_a_process_id_that_was_given_again_is_another_process(pid: int) -> None:
    """Of a container started again, every first process has the number 1."""
    machine, _, _ = workers.this_worker().split("|")
    assert workers.is_dead(f"{machine}|{pid}|1")


@pytest.mark.parametrize("worker", ["", "elsewhere|1|1", "a|b", "a|b|c|d", "|||", "elsewhere|x|y"])
def test_nothing_is_known_of_other_machines(worker: str) -> None:
    assert not workers.is_dead(worker)


def test_without_a_process_table_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, pid, _ = workers.this_worker().split("|")
    monkeypatch.setattr(workers, "_start_time", lambda pid: "")
    assert not workers.is_dead(f"{machine}|{pid}|")


def test_machines_of_one_name_are_told_apart() -> None:
    """The first process namespace has one number on every Linux machine, and names repeat."""
    machine, _, _ = workers.this_worker().split("|")
    marks = [Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")]
    assert any(mark.exists() and mark.read_text().strip() in machine for mark in marks)


def _is_another(worker: str) -> None:
    assert workers.this_worker() != worker
    assert not workers.is_dead(worker)


def test_each_process_is_a_worker_of_its_own() -> None:
    assert in_new_process(_is_another, workers.this_worker()) == 0
