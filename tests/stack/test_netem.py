"""LAB_LATENCY_BY=netem: its command lines, and what this machine's kernel can show of them."""

import os
import shutil
import subprocess
import sys

import pytest

from lab.errors import LabError
from lab.paths import ROOT, State
from lab.settings import load_settings
from lab.stack.native import netem

DELAYED = {"LAB_LATENCY_MS": "40", "LAB_LATENCY_BY": "netem"}
# A queue that delays nothing, where the kernel lacks the one that does.
PLAIN = ["pfifo", "limit", "100"]
# Ten bytes to Postgres' port, ten back from it; the same with a port of nobody's.
TALK = """
import socket
for port in ({postgres}, 9999):
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        answering, _ = server.accept()
        client.sendall(b"x" * 10)
        answering.recv(10)
        answering.sendall(b"y" * 5000)
        client.recv(5000)
"""


def _settings(**more):
    return load_settings(DELAYED | more)


def _filters(settings):
    return [" ".join(argv).partition(" u32 ")[2] for argv in netem.commands(settings)[3:]]


def test_outgoing_is_to_postgres_and_from_the_server():
    assert _filters(_settings()) == [
        "match ip protocol 6 0xff match ip dport 25432 0xffff flowid 1ab:1",
        "match ip protocol 6 0xff match ip sport 8001 0xffff flowid 1ab:1",
    ]


def test_incoming_is_the_other_way_round():
    assert _filters(_settings(LAB_LATENCY_DIRECTION="incoming")) == [
        "match ip protocol 6 0xff match ip sport 25432 0xffff flowid 1ab:1",
        "match ip protocol 6 0xff match ip dport 8001 0xffff flowid 1ab:1",
    ]


def test_one_queue_delays():
    queue = " ".join(netem.commands(_settings())[2])
    assert queue == ("tc qdisc add dev lo parent 1ab:1 handle 1ac: netem delay 40ms limit 100000")


def _in_a_network_of_its_own(script):
    if os.getuid() != 0 or not shutil.which("tc"):
        pytest.skip("needs root and tc: a network of one's own is made by unshare")
    argv = ["unshare", "--net", "sh", "-euc", script]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _shell(commands):
    return "\n".join(" ".join(argv) for argv in commands)


@pytest.mark.parametrize("direction", ["outgoing", "incoming"])
def test_the_kernel_sends_the_backends_packets_there_and_no_others(direction, tmp_path):
    settings = _settings(LAB_LATENCY_DIRECTION=direction)
    commands = netem.commands(settings)
    commands[2] = [*commands[2][: commands[2].index("netem")], *PLAIN]
    talk = tmp_path / "talk.py"
    talk.write_text(TALK.format(postgres=settings.LAB_POSTGRES_PORT))
    show = f"python3 {talk}\ntc -s class show dev lo"
    done = _in_a_network_of_its_own(f"ip link set lo up\n{_shell(commands)}\n{show}")
    if "kind is unknown" in done.stderr:
        pytest.skip(f"this kernel: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    sent = int(done.stdout.split("Sent ")[1].split()[0])
    # Headers and ten bytes one way, headers and 5,000 bytes the other.
    assert (100 < sent < 2000) if direction == "outgoing" else (5000 < sent < 8000)


def test_tc_knows_every_word_of_the_queue():
    """Its own complaint about a word would stand before the kernel's answer."""
    done = _in_a_network_of_its_own(_shell(netem.commands(_settings())[:3]))
    assert done.returncode == 0 or "kind is unknown" in done.stderr, done.stderr
    assert "What is" not in done.stderr


def test_a_kernel_without_it_is_told_before_anything_changes(tmp_path):
    if _in_a_network_of_its_own("tc qdisc add dev lo root netem delay 1ms").returncode == 0:
        pytest.skip("this kernel has netem: there is nothing to refuse")
    with pytest.raises(LabError, match=r"netem needs .* this kernel says.*BY=toxiproxy"):
        netem.check(State(tmp_path))


def test_another_scheduler_is_left_alone(tmp_path):
    """Asked in a network of its own, whose loopback has one."""
    found = _found_by_delay("tc qdisc add dev lo root handle 9: pfifo limit 5", tmp_path)
    assert "another is there: pfifo 9:" in found.stdout
    assert "qdisc pfifo 9: root" in found.stdout


def test_what_could_not_be_finished_is_taken_away(tmp_path):
    found = _found_by_delay("ip link set lo up", tmp_path)
    if "refused" not in found.stdout:
        pytest.skip("this kernel has netem")
    assert "qdisc htb" not in found.stdout
    assert not (tmp_path / "run/netem").exists()


def _found_by_delay(before, folder):
    """What `netem.delay` says where `before` was done, and the schedulers that it leaves."""
    (folder / "run").mkdir()
    script = folder / "delay.py"
    script.write_text(
        "from lab.stack.native import netem\nfrom lab.errors import LabError\n"
        "from lab.paths import State\nfrom pathlib import Path\n"
        "from lab.settings import load_settings\n"
        f"try:\n    netem.delay(load_settings({DELAYED}), State(Path({str(folder)!r})))\n"
        "except LabError as error:\n    print('refused:', error)\n"
    )
    here = f"PYTHONPATH={ROOT} {sys.executable} {script}"
    done = _in_a_network_of_its_own(f"{before}\n{here}\ntc qdisc show dev lo")
    assert done.returncode == 0, done.stderr
    return done
