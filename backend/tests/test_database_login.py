"""The database password is not sent to an impostor that listens in place of Postgres."""

import socket
import struct
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import OperationalError, connection
from ops import roles

# https://www.postgresql.org/docs/current/protocol-message-formats.html
_SSL_REQUEST, _CLEARTEXT = 80877103, struct.pack("!cII", b"R", 8, 3)


class Impostor:
    """Server that accepts one connection, requests a cleartext password and stores the reply."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.port = listener.getsockname()[1]
        self.reply = b""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client:
            client.settimeout(5)
            while (first := _message(client))[:4] != struct.pack("!I", 3 << 16):
                assert first == struct.pack("!I", _SSL_REQUEST)
                client.sendall(b"N")
            client.sendall(_CLEARTEXT)
            self.reply = client.recv(1024)

    def join(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


def _message(client: socket.socket) -> bytes:
    """Return the body of one startup message, which follows its length."""
    (length,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
    return client.recv(length - 4, socket.MSG_WAITALL)


@pytest.fixture
def impostor() -> Iterator[Impostor]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Impostor(listener)


def test_client_without_require_auth_sends_password_to_impostor(impostor):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(
            host="127.0.0.1", port=impostor.port, user="hotel", dbname="hotel", password="secret"
        )
    impostor.join()
    assert impostor.reply == b"p" + struct.pack("!I", 11) + b"secret\0"


@pytest.mark.django_db
def test_application_does_not_send_password_to_impostor(impostor):
    copy = connection.copy()
    copy.settings_dict["OPTIONS"].pop("pool", None)
    copy.settings_dict |= {"HOST": "127.0.0.1", "PORT": impostor.port, "PASSWORD": "secret"}
    with pytest.raises(OperationalError, match="authentication method requirement"):
        copy.ensure_connection()
    impostor.join()
    assert impostor.reply == b""


def test_superuser_login_does_not_send_password_to_impostor(impostor, monkeypatch, tmp_path):
    (tmp_path / "postgres_password").write_text("secret" * 11)
    monkeypatch.setenv("BACKEND_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", str(impostor.port))
    with pytest.raises(psycopg.OperationalError, match="authentication method requirement"):
        roles.connect()
    impostor.join()
    assert impostor.reply == b""
