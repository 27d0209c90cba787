"""Whatever is killed, `lab up` alone brings back a stack that answers, with every booking."""

import shutil
import subprocess

import httpx
import pytest

from load_lab.paths import current_state, project
from tests.faults.kills.catalogue import COMMANDS, choose_kills
from tests.faults.kills.killed import (
    LAB,
    Clients,
    kill_command,
    kill_service,
    lost_bookings,
    strangers,
)

# Of a service and of a command.
CORE = {"postgres", "up-KILL"}
FULL = 8


def _marked(kills):
    """Yield each kill with the tiers that do it; `make test-machine` does all."""
    core = set(CORE)
    for number, kill in enumerate(kills):
        marks = [pytest.mark.machine(part="kills")]
        name = kill.service or f"{kill.command}-{kill.signals}"
        if name in core:
            core.remove(name)
            marks.append(pytest.mark.core)
        if number < FULL:
            marks.append(pytest.mark.full)
        yield pytest.param(kill, marks=marks, id=kill.name)


@pytest.fixture(scope="module")
def clean_results():
    """Remove the files that runs leave in results/."""
    project().results.mkdir(exist_ok=True)
    before = set(project().results.iterdir())
    yield
    for path in set(project().results.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("kill", list(_marked(choose_kills())))
def test_up_restores_the_stack_after_a_kill(kill, lab, stack, tmp_path, clean_results):
    state = current_state()
    assert lab("up").code == 0
    clients = Clients(stack.settings().target_url)
    clients.book(3)
    if kill.service:
        with clients.booking():
            kill_service(kill.service, stack, state)
    else:
        _kill_command(kill, lab, tmp_path / "output", clients)
    result = lab("up")
    assert result.code == 0, result.err
    assert httpx.get(f"{clients.url}/api/hotel/", timeout=10).status_code == 200
    assert strangers(stack, state) == []
    assert lost_bookings(stack, clients.acknowledged) == set()
    clients.book()


def _kill_command(kill, lab, log, clients):
    command = COMMANDS[kill.command]
    if command.cold:
        assert lab("down").code == 0
    if command.resets:
        # It deletes these bookings itself, and says so.
        clients.acknowledged.clear()
    ended = kill_command(kill, log)
    if kill.signals == "KILL":
        assert ended.code == -9
    else:
        assert ended.code == 1, ended.output
        assert "nterrupted" in ended.output.splitlines()[-1]
        assert "Traceback" not in ended.output


def test_two_starts_at_once_both_end_with_a_running_stack(lab, stack):
    assert lab("down").code == 0
    starts = [
        subprocess.Popen(
            [str(LAB), "up"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        for _ in range(2)
    ]
    outputs = [start.communicate(timeout=120)[1] for start in starts]
    assert [start.returncode for start in starts] == [0, 0], outputs
    assert [output for output in outputs if "Waiting for `lab up` (process" in output]
