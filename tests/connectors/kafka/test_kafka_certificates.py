"""Certificates that are refused by one side: what is said, and what is to be done."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("kafka")
from connectors.kafka.client import Connection, probe
from connectors.kafka.settings import Security
from connectors.topics import RefusedError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

AUTHORITY = """
[ca]
default_ca = here
[here]
database = index.txt
new_certs_dir = .
serial = serial
private_key = ca.key
certificate = ca.pem
default_md = sha256
policy = names
x509_extensions = more
[names]
commonName = supplied
[more]
basicConstraints = CA:FALSE
subjectAltName = DNS:
"""


class Certificates:
    """An authority, which signs for any host and any time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "index.txt").touch()
        (directory / "serial").write_text("1000")
        self._openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority "
            "-addext keyUsage=critical,keyCertSign,cRLSign"
        )

    def made(self, name: str, *, host: str, start: str, end: str) -> tuple[Path, Path]:
        """Return a certificate and its key."""
        (self.directory / "ca.cnf").write_text(AUTHORITY.rstrip() + host + "\n")
        self._openssl(
            f"req -new -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
        )
        self._openssl(
            f"ca -batch -notext -config ca.cnf -in {name}.csr -out {name}.pem "
            f"-startdate {start}0101000000Z -enddate {end}0101000000Z"
        )
        return self.directory / f"{name}.pem", self.directory / f"{name}.key"

    def _openssl(self, words: str) -> None:
        subprocess.run(
            ["openssl", *words.split()], cwd=self.directory, check=True, capture_output=True
        )


@contextmanager
def served(context: ssl.SSLContext) -> Iterator[str]:
    """Accept clients with TLS; return the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with suppress(OSError), context.wrap_socket(client, server_side=True) as one:
                        one.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield f"localhost:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def refusal(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    with served(server) as address, pytest.raises(RefusedError) as caught:
        probe([address], context=client, login=None, until=time.monotonic() + 60.0)
    return str(caught.value).replace(address, "there")


@pytest.mark.parametrize(
    ("host", "start", "end", "reason", "cure"),
    [
        ("localhost", 2020, 2021, "certificate has expired", "renew it on the broker"),
        # OpenSSL 3.6 goes on: "or the system clock is incorrect".
        ("localhost", 2090, 2091, "not yet valid", "is the clock of this machine right?"),
        ("elsewhere", 2020, 2090, "localhost", "write the broker's address as in its certificate"),
    ],
)
def test_a_certificate_of_the_broker_that_is_refused_is_told_with_its_cure(
    tmp_path: Path, host: str, start: int, end: int, reason: str, cure: str
) -> None:
    made = Certificates(tmp_path).made("server", host=host, start=f"{start}", end=f"{end}")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(*made)
    said = refusal(server, ssl.create_default_context(cafile=str(tmp_path / "ca.pem")))
    begins, _, rest = said.partition(" (")
    assert begins == "broker there shows a certificate that is not trusted"
    assert reason in rest
    assert rest.endswith(f"); {cure}")


def test_an_expired_certificate_of_the_client_is_no_reason_to_try_again(tmp_path: Path) -> None:
    authority = Certificates(tmp_path)
    ca_file = str(tmp_path / "ca.pem")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca_file)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(*authority.made("server", host="localhost", start="2020", end="2090"))
    client = ssl.create_default_context(cafile=ca_file)
    client.load_cert_chain(*authority.made("client", host="client", start="2020", end="2021"))
    said = refusal(server, client)
    assert said.startswith("broker there does not accept the certificate of this client (")
    assert "has cert_file expired" in said


def test_a_new_connection_has_the_certificate_that_is_in_the_file_by_now(tmp_path: Path) -> None:
    authority = Certificates(tmp_path)
    ca_file, file, key = (str(tmp_path / name) for name in ("ca.pem", "cert.pem", "cert.key"))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca_file)
    server.verify_mode = ssl.CERT_REQUIRED
    server.maximum_version = ssl.TLSVersion.TLSv1_2  # later ones refuse only after the handshake
    server.load_cert_chain(*authority.made("server", host="localhost", start="2020", end="2090"))

    def put(end: str) -> None:
        for made, place in zip(
            authority.made(f"client{end}", host="client", start="2020", end=end),
            (file, key),
            strict=True,
        ):
            shutil.copy(made, place)

    put("2021")
    security = Security(protocol="SSL", ca_file=ca_file, cert_file=file, key_file=key)
    with served(server) as address:
        host, _, port = address.rpartition(":")
        connection = Connection(address, security, renew=lambda: security)
        expired = connection.why_unreachable(host, int(port))
        put("2090")
        renewed = connection.why_unreachable(host, int(port))
        Path(file).write_text("half a certif")
        written = connection.why_unreachable(host, int(port))
    let_in = "it does not answer as Kafka does"
    assert [let_in in str(said) for said in (expired, renewed, written)] == [False, True, True]
