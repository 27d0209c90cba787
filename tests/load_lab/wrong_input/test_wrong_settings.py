"""Odd values of settings, and odd `.env` files: each is one message with exit code 2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_lab.errors import UsageError
from load_lab.settings import load_settings
from load_lab.settings.env_file import read_env_file

BAD_FILES = {
    "no-equals-sign": (b"LAB_WORKERS=2\nLAB_SERVER\n", "line 2: 'LAB_SERVER' is not a variable"),
    "unclosed-quote": (b"\n\n# workers\nLAB_WORKERS='2\n", 'line 4: "LAB_WORKERS=\'2" is not'),
    "sentence": (b"LAB_WORKERS=2\n\nuse two workers\n", "line 3: 'use two workers' is not"),
    "latin-1": (b"LAB_WORKERS=2\n# f\xfcr\n", "line 2: not UTF-8"),
    "utf-16": ("LAB_WORKERS=2\n".encode("utf-16"), "line 1: not UTF-8"),
    "nul": (b"LAB_WORKERS=2\0\n", "LAB_WORKERS='2\\x00' is invalid"),
    "unknown-name": (b"LAB_WORKER=2\n", "There is no setting LAB_WORKER"),
    "invalid-value": (b"LAB_SERVER=apache\n", "LAB_SERVER=apache is invalid"),
    "long-line": (b"x" * 100_000, "line 1: 'xxxxx"),
}
GOOD_FILES = {
    "empty": b"",
    "byte-order-mark": b"\xef\xbb\xbfLAB_WORKERS=3\n",
    "carriage-returns": b"LAB_WORKERS=3\r\nLAB_THREADS=4\r\n",
    "export": b"export LAB_WORKERS=3\n",
    "other-programs": b"COMPOSE_PROJECT_NAME=x\nPASSWORD='a b'\n",
    "umlaut": "# für zwei\nLAB_WORKERS=3\n".encode(),
}
BAD_VALUES = {
    "huge-cpu-range": ("LAB_TARGET_CPUS", "0-99999999999", "a CPU list such as 0-2,5"),
    "many-cpu-ranges": ("LAB_LOAD_CPUS", ",".join(["0-9999"] * 2000), "a CPU list"),
    "long-cpu": ("LAB_LOAD_CPUS", "9" * 5000, "(5000 characters) is invalid. Allowed: a CPU list"),
    "arabic-cpus": ("LAB_LOAD_CPUS", "٠-١", "a CPU list"),
    "cpus-newline": ("LAB_LOAD_CPUS", "0\n", "a CPU list"),
    "cpus-backwards": ("LAB_LOAD_CPUS", "3-1", "a CPU list"),
    "long-integer": ("LAB_WORKERS", "9" * 5000, "(5000 characters) is invalid"),
    "arabic-integer": ("LAB_WORKERS", "٣", "a valid integer"),
    "fullwidth-integer": ("LAB_THREADS", "８", "a valid integer"),
    "underscore": ("LAB_DATA_HOTELS", "1_000", "a valid integer"),
    "spaces": ("LAB_WORKERS", " 2 ", "a valid integer"),
    "point": ("LAB_LATENCY_MS", "5.0", "a valid integer"),
    "exponent": ("LAB_WORKERS", "1e1", "a valid integer"),
    "empty": ("LAB_WORKERS", "", "a valid integer"),
    "large-seed": ("LAB_DATA_SEED", "9" * 18 + "9", "a valid integer"),
    "arabic-pool": ("LAB_DB_POOL", "٥", "off, or a size from 1 to 1000"),
    "long-pool": ("LAB_DB_POOL", "1" * 5000, "off, or a size from 1 to 1000"),
    "arabic-duration": ("LAB_NGINX_CACHE_TTL", "٥s", "a duration from 1s to 1h"),
    "duration-newline": ("LAB_NGINX_CACHE_TTL", "5s\n", "a duration from 1s to 1h"),
    "arabic-address": ("LAB_BIND", "١٢٧.0.0.1", "an IPv4 address"),
    "shell-command": ("LAB_BIND", "$(reboot)", "an IPv4 address"),
    "not-utf-8": ("LAB_SERVER", "\udcff", "LAB_SERVER='\\udcff' is invalid"),
    "port-range": ("LAB_HTTP_PORT", "70000", "Allowed: 65535 or less"),
}


@pytest.fixture
def env_file(monkeypatch, tmp_path):
    """Return a path; the lab reads it as its `.env`."""
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    return tmp_path / ".env"


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_env_file_is_usage_error(env_file, run_lab, monkeypatch, content, message):
    monkeypatch.delenv("LAB_WORKERS", raising=False)
    env_file.write_bytes(content)
    ending = run_lab("status")
    assert ending.is_error(2, message), ending
    assert len(ending.err) < 2000


@pytest.mark.parametrize("content", GOOD_FILES.values(), ids=GOOD_FILES)
def test_good_env_file_is_read(env_file, run_lab, content):
    env_file.write_bytes(content)
    assert run_lab("status").code == 0
    assert (3 if b"WORKERS" in content else 2) == load_settings({}).LAB_WORKERS


def test_unreadable_env_file_is_usage_error(env_file, run_lab):
    env_file.mkdir()
    assert run_lab("status").is_error(2, "can't be read: Is a directory")


@pytest.mark.parametrize(("name", "value", "message"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_bad_value_is_usage_error(run_lab, monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    ending = run_lab("status")
    assert ending.is_error(2, message), ending
    assert len(ending.err) < 2000


@given(st.binary(max_size=60) | st.text("AB_='\"\\\n#$ x", max_size=40).map(str.encode))
def test_env_reader_returns_variables_or_usage_error(tmp_path, content):
    path = tmp_path / ".env"
    path.write_bytes(content)
    try:
        variables = read_env_file(path)
    except UsageError:
        return
    assert all(isinstance(value, str) for pair in variables.items() for value in pair)


@given(
    st.sampled_from(["LAB_WORKERS", "LAB_DATA_SEED", "LAB_LOAD_CPUS", "LAB_DB_POOL", "LAB_BIND"]),
    st.text(max_size=20) | st.text("0123456789-,._٣ ", max_size=12),
)
def test_value_is_accepted_in_ascii_or_usage_error(name, value):
    try:
        settings = load_settings({name: value})
    except UsageError:
        return
    assert settings.as_env()[name].isascii()
