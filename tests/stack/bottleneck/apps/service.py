"""What an app waits for, or who loads it besides: service.py NAME ARGUMENT …

answer ADDRESS AT_ONCE SECONDS     a server at a port or a Unix socket; its threads sleep
compute ADDRESS AT_ONCE SECONDS    the same; they compute
refuse ADDRESS RATE                answers 429 to what comes above a rate
drain PIPE BYTES                   reads so many bytes a second
silent HOST                        a DNS server that never answers
download PORT CLIENTS              clients that read slowly
"""

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

OK, REFUSED = b"200 OK", b"429 Too Many Requests"
TICK_SECONDS = 0.05
_DNS_PORT = 53


def answer(address, at_once, seconds):
    _serve(_listen(address), int(at_once), lambda: _slept(float(seconds)))


def compute(address, at_once, seconds):
    _serve(_listen(address), int(at_once), lambda: _computed(float(seconds)))


def refuse(address, rate):
    lock, tokens, last = Lock(), 1.0, time.monotonic()

    def status():
        nonlocal tokens, last
        with lock:
            now = time.monotonic()
            tokens, last = min(tokens + (now - last) * float(rate), 5.0), now
            if tokens < 1:
                return REFUSED
            tokens -= 1
            return OK

    _serve(_listen(address), 16, status)


def drain(path, size):
    os.mkfifo(path)
    print("ready", flush=True)
    with Path(path).open("rb", buffering=0) as pipe:
        while pipe.read(int(int(size) * TICK_SECONDS)):
            time.sleep(TICK_SECONDS)


def silent(host):
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind((host, _DNS_PORT))
        print("ready", flush=True)
        while True:
            server.recv(512)


def download(port, clients):
    print("ready", flush=True)
    for _ in range(int(clients)):
        Thread(target=_download, args=(int(port),)).start()


def _download(port):
    while True:
        with suppress(OSError), socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.connect(("127.0.0.1", port))
            client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while client.recv(8192):
                time.sleep(TICK_SECONDS)
        # Before the app listens.
        time.sleep(TICK_SECONDS)


def _slept(seconds):
    time.sleep(seconds)
    return OK


def _computed(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return OK


def _listen(address):
    if address.isdecimal():
        server = socket.create_server(("127.0.0.1", int(address)), backlog=1024)
    else:
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(1024)
    print("ready", flush=True)
    return server


def _serve(server, at_once, status):
    for _ in range(at_once):
        Thread(target=_answer, args=(server, status)).start()


def _answer(server, status):
    while True:
        connection, _ = server.accept()
        with suppress(OSError), connection:
            while b"\r\n\r\n" not in connection.recv(65_536):
                pass
            head = b"HTTP/1.1 %s\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            connection.sendall(head % status())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
