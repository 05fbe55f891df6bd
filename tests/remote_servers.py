"""Real servers on loopback that a test starts and ends: nginx, moto's S3, bazel-remote; and one of
our own that misbehaves, a row of FAULTS at a time.

A test whose server is not installed skips, visibly.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

NGINX = """
daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {root}/body;
  proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fast; uwsgi_temp_path {root}/uwsgi;
  scgi_temp_path {root}/scgi;
  server {{
    listen 127.0.0.1:{port}{tls};
    location / {{
      root {root}/data; dav_methods PUT; create_full_put_path on; {more}
    }}
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: list[str], port: int, environment: Mapping[str, str] = {}) -> Iterator[None]:
    """A server that is up inside the block."""
    running = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            assert running.poll() is None, f"{command[0]} ended with {running.returncode}"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        running.terminate()
        running.wait()


@contextmanager
def nginx(root: Path, more: str = "", tls: str = "") -> Iterator[str]:
    """The URL of nginx with WebDAV over `root`/data; `more` directives, and `tls` ones."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    (root / "data").mkdir(parents=True)
    port = free_port()
    tls_on = f" ssl; {tls}".removesuffix(";") if tls else ""
    text = NGINX.format(root=root, port=port, more=more, tls=tls_on)
    (root / "nginx.conf").write_text(text)
    # Run by root it would serve as nobody, who may not read a test's folder.
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    with process([program, "-p", str(root), "-c", str(root / "nginx.conf"), *user], port):
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}"


@contextmanager
def bazel_remote(root: Path) -> Iterator[str]:
    """The URL of a real bazel-remote, with its checks of what an action result is."""
    program = shutil.which("bazel-remote")
    if program is None:
        pytest.skip("bazel-remote is not on PATH")
    port, grpc = free_port(), free_port()
    command = [program, "--dir", str(root), "--max_size", "1"]
    command += [f"--http_address=127.0.0.1:{port}", f"--grpc_address=127.0.0.1:{grpc}"]
    with process(command, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def moto(monkeypatch: pytest.MonkeyPatch, bucket: str = "artifacts") -> Iterator[str]:
    """The URL of an empty bucket at moto's S3."""
    for package in ("moto", "obstore"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    said = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-tester",
        "AWS_REGION": "us-east-1",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    with process([sys.executable, "-m", "moto.server", "-p", str(port)], port):
        import urllib.request

        request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
        urllib.request.urlopen(request).close()
        yield f"s3://{bucket}/npumake"


# -- one that misbehaves -----------------------------------------------------------------------


@dataclass
class Faulty:
    """A server over a dict. `fault` is a name of FAULTS, applied where `applies` says so; `seen`
    is every request, with its headers."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    fault: str = "none"
    applies: Callable[[str], bool] = lambda name: True
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def asked(self, verb: str) -> list[str]:
        return [name for method, name, _ in self.seen if method == verb]


Answer = Callable[["Handler", bytes], None]


def _stall(handler: Handler, data: bytes) -> None:
    time.sleep(60)


def _stall_midway(handler: Handler, data: bytes) -> None:
    handler.begin(200, len(data))
    handler.wfile.write(data[: len(data) // 2])
    handler.wfile.flush()
    time.sleep(60)


def _drip(handler: Handler, data: bytes) -> None:
    handler.begin(200, len(data))
    for byte in data:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.3)


def _reset(handler: Handler, data: bytes) -> None:
    handler.begin(200, len(data))
    handler.wfile.write(data[: len(data) // 2])
    handler.wfile.flush()
    linger = b"\1\0\0\0\0\0\0\0"  # closing sends a reset
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True


def _truncate(handler: Handler, data: bytes) -> None:
    handler.begin(200, len(data))
    handler.wfile.write(data[: len(data) // 2])
    handler.close_connection = True


def _shorten(handler: Handler, data: bytes) -> None:
    handler.reply(200, data[:-1])


def _lengthen(handler: Handler, data: bytes) -> None:
    handler.reply(200, data + b"and more")


def _endless(handler: Handler, data: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()  # without a length: until the connection ends
    handler.close_connection = True
    with suppress(OSError):
        while True:
            handler.wfile.write(bytes(1 << 20))


def _flip(handler: Handler, data: bytes) -> None:
    handler.reply(200, bytes([data[0] ^ 1]) + data[1:] if data else b"x")


def _other(handler: Handler, data: bytes) -> None:
    """The bytes of another name of the same kind."""
    kind = handler.name.partition("/")[0]
    others = sorted(k for k in handler.server.state.blobs if k.startswith(kind))
    at = others.index(handler.name)
    handler.reply(200, handler.server.state.blobs[others[at - 1]])


def _html(handler: Handler, data: bytes) -> None:
    handler.reply(200, b"<html>please sign in</html>")


def _redirect(handler: Handler, data: bytes) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:9/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _wrong_range(handler: Handler, data: bytes) -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 1-{len(data)}/{len(data)}")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _garbage(handler: Handler, data: bytes) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n" * 40)
    handler.close_connection = True


def _close(handler: Handler, data: bytes) -> None:
    handler.close_connection = True


def _status(code: int) -> Answer:
    return lambda handler, data: handler.reply(code, b"no")


def _lack_slowly(handler: Handler, data: bytes) -> None:
    time.sleep(0.3)
    handler.reply(404, b"")


def _odd_numbers(handler: Handler, data: bytes) -> None:
    handler.send_response(503)
    for name in ("Retry-After", "Content-Length"):
        handler.send_header(name, "\u00b2" if name == "Retry-After" else "0" * 5000)
    handler.end_headers()
    handler.close_connection = True


# What the server does with a GET of something that is there.
FAULTS: Mapping[str, Answer] = {
    "stalls": _stall,
    "stalls midway": _stall_midway,
    "drips": _drip,
    "resets": _reset,
    "truncates": _truncate,
    "answers shorter": _shorten,
    "answers longer": _lengthen,
    "never ends": _endless,
    "flips a bit": _flip,
    "sends another's": _other,
    "sends a page": _html,
    "redirects": _redirect,
    "sends another range": _wrong_range,
    "speaks no HTTP": _garbage,
    "closes": _close,
    "answers 400": _status(400),
    "answers 401": _status(401),
    "answers 403": _status(403),
    "answers 404": _status(404),
    "answers 404 late": _lack_slowly,
    "sends odd numbers": _odd_numbers,
    "answers 429": _status(429),
    "answers 500": _status(500),
    "answers 503": _status(503),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def name(self) -> str:
        return self.path.lstrip("/")

    def reply(self, status: int, data: bytes) -> None:
        self.begin(status, len(data))
        self.wfile.write(data)

    def begin(self, status: int, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def do_GET(self) -> None:
        state = self._see()
        data = state.blobs.get(self.name)
        if state.fault in FAULTS and state.applies(self.name):
            with suppress(OSError):
                FAULTS[state.fault](self, data or b"")
            return
        if data is None:
            self.reply(404, b"")
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if not start:
            self.reply(200, data)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:])

    def do_HEAD(self) -> None:
        data = self._see().blobs.get(self.name)
        self.begin(404 if data is None else 200, 0 if data is None else len(data))

    def do_PUT(self) -> None:
        state = self._see()
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if len(data) == int(self.headers["Content-Length"]):
            state.blobs[self.name] = data
        self.reply(201, b"")

    def _see(self) -> Faulty:
        state = self.server.state
        state.seen.append((self.command, self.name, dict(self.headers.items())))
        return state

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    state: Faulty

    def handle_error(self, request: object, client_address: object) -> None:
        """What the client gives up is no news here."""


@contextmanager
def faulty(context: ssl.SSLContext | None = None) -> Iterator[Faulty]:
    server = _Server(("127.0.0.1", 0), Handler)
    server.state = Faulty()
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    server.state.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        server.server_close()
