"""A ledger on a server that is reached over TLS: who proves what, and what an address that says nothing means."""

from __future__ import annotations

import datetime
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.postgres import LOCKED, QUICK, Server, needs_postgres, own_server
from support.shell import Shell, make_shell
from troth.core.errors import Refused
from troth.ledger.operations import Candidate
from troth.stores.opening import open_store
from troth.stores.postgres.creating import create_ledger
from troth.stores.postgres.driver import proof_demanded

NAME = "ledger.example"
PASSWORD = "correct horse"


@dataclass
class Authority:
    """One that vouches for servers."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, _certificate("authority", key, key, "authority", ca=True))

    def server(self, name: str) -> tuple[bytes, bytes]:
        """Return certificate and key for a server of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(name, key, self.key, "authority", ca=False)
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        pem = serialization.Encoding.PEM
        return made.public_bytes(pem), key.private_bytes(pem, form, plain)

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, issuer: str, *, ca: bool
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer, hashes.SHA256())
    )


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass
class Over:
    """A server that lets nobody in over the network but with a password, and over TLS where it has a certificate."""

    server: Server
    database: str
    good: Path
    other: Path

    def address(self, **more: str) -> str:
        """Return its address by name; where the name leads is said beside it, for there is no resolver."""
        said = {"host": NAME, "hostaddr": "127.0.0.1", "port": str(self.server.port), "password": PASSWORD} | more
        said = {name: value.replace(" ", "%20") for name, value in said.items()}
        pairs = "&".join(f"{name}={value}" for name, value in said.items())
        return f"postgresql://{LOCKED}@/{self.database}?{pairs}&workspace=w"


def _served(tmp: Path, *, tls: bool) -> Iterator[Over]:
    authority, stranger = Authority.new(), Authority.new()
    with own_server(QUICK, host="127.0.0.1", port=_free_port()) as server:
        server.stop()
        data = server.folder / "data"
        if tls:
            for name, pem in zip(("server.crt", "server.key"), authority.server(NAME), strict=True):
                (data / name).write_bytes(pem)
                os.chown(data / name, data.stat().st_uid, data.stat().st_gid)
                (data / name).chmod(0o600)
            server.settings = (*server.settings, "ssl=on")
        with (data / "pg_hba.conf").open("w") as rules:
            rules.write(
                f"local all postgres trust\n{'hostssl' if tls else 'host'} all all 127.0.0.1/32 scram-sha-256\n"
            )
        server.start()
        database = server.database()
        create_ledger(f"{server.address(database)}&workspace=w")[0].close()
        with psycopg.connect(server.address(database), autocommit=True) as conn:
            conn.execute(f"CREATE ROLE {LOCKED} SUPERUSER LOGIN PASSWORD '{PASSWORD}'".encode())
        good, other = tmp / "good.crt", tmp / "other.crt"
        good.write_bytes(authority.pem())
        other.write_bytes(stranger.pem())
        yield Over(server, database, good, other)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Over]:
    yield from _served(tmp_path_factory.mktemp("tls"), tls=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Over]:
    yield from _served(tmp_path_factory.mktemp("plain"), tls=False)


def written(address: str) -> str:
    """Append through an address and tell by which protocol."""
    store = open_store(address)
    try:
        store.append(Candidate("capture", "human:reviewer", {"body": secrets.token_hex(4)}))
        assert store.read().verification.ok
    finally:
        store.close()
    with psycopg.connect(address.replace("&workspace=w", "")) as conn:
        found = conn.execute("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
    assert found is not None
    return str(found[0])


@needs_postgres
@pytest.mark.parametrize("mode", ["verify-full", "verify-ca", None])
def test_a_server_that_proves_its_name(encrypted: Over, mode: str | None) -> None:
    more = {"sslrootcert": str(encrypted.good)} | ({"sslmode": mode} if mode else {})
    assert written(encrypted.address(**more)).startswith("TLS")


@needs_postgres
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"sslrootcert": "OTHER"}, "SSL error: "),  # one of the same name
        ({"sslrootcert": "GOOD", "host": "another.example"}, "does not match host name"),
        ({}, "certificate verify failed"),  # the system's authorities do not know it
        ({"sslmode": "verify-full", "sslrootcert": "/nowhere/root.crt"}, "root certificate file"),
        ({"sslmode": "disable"}, "no encryption"),
    ],
)
def test_one_that_does_not_is_refused_at_once(encrypted: Over, more: dict[str, str], says: str) -> None:
    files = {"OTHER": str(encrypted.other), "GOOD": str(encrypted.good)}
    _refused(encrypted.address(**{name: files.get(value, value) for name, value in more.items()}), says)


@needs_postgres
def test_one_that_does_not_encrypt_gets_no_password(plain: Over) -> None:
    _refused(plain.address(), "does not support SSL")
    _refused(plain.address(sslmode="require"), "does not support SSL")
    assert written(plain.address(sslmode="disable")) == "None"


def _refused(address: str, says: str) -> None:
    with pytest.raises(Refused) as told:
        open_store(address).read()
    assert told.value.code == "E_STORE_REFUSED"
    assert says in told.value.message
    assert "sslrootcert=FILE" in (told.value.remedy or "")
    assert PASSWORD not in str(told.value.as_json())
    assert PASSWORD.replace(" ", "%20") not in str(told.value.as_json())


@needs_postgres
@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_a_password_that_stands_in_no_address(
    encrypted: Over, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    file = tmp_path / "kept"
    port = encrypted.server.port
    address = f"postgresql://{LOCKED}@/{encrypted.database}?host={NAME}&hostaddr=127.0.0.1&port={port}&workspace=w"
    address = address.replace("&workspace", f"&sslrootcert={encrypted.good}&workspace")
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, PASSWORD)
    elif way == "PGPASSFILE":
        file.write_text(f"{NAME}:{port}:*:{LOCKED}:{PASSWORD}\n")
        file.chmod(0o600)
        monkeypatch.setenv(way, str(file))
    else:
        file.write_text(
            f"[l]\nhost={NAME}\nhostaddr=127.0.0.1\nport={port}\nuser={LOCKED}\npassword={PASSWORD}\n"
            f"sslmode=verify-full\nsslrootcert={encrypted.good}\ndbname={encrypted.database}\n"
        )
        monkeypatch.setenv(way, str(file))
        address = "postgresql://?service=l&workspace=w"
    assert written(address).startswith("TLS")


@needs_postgres
def test_the_command_line_says_nothing_of_the_password(
    encrypted: Over, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    troth: Shell = make_shell(capfd)
    for more in ({"sslrootcert": str(encrypted.good)}, {"sslrootcert": str(encrypted.other)}):
        for words in (["status"], ["status", "--json"], ["verify"], ["capture", "seen", "--as", "human:reviewer"]):
            said = troth(*words, "--store", encrypted.address(**more))
            assert said.exit == (0 if more["sslrootcert"] == str(encrypted.good) else 2), said
            assert PASSWORD not in said.out + said.err
            assert PASSWORD.replace(" ", "%20") not in said.out + said.err


FULL = {"sslmode": "verify-full", "sslrootcert": "system"}


@pytest.mark.parametrize(
    ("said", "environment", "demanded"),
    [
        ({}, {}, {}),
        ({"host": "/run/postgresql"}, {}, {}),
        ({"host": "localhost"}, {}, {}),
        ({"host": "127.0.0.5,::1,"}, {}, {}),
        ({"host": "db.example"}, {}, FULL),
        ({"host": "localhost,db.example"}, {}, FULL),
        ({"hostaddr": "192.0.2.1"}, {}, FULL),
        ({"host": "localhost", "hostaddr": "192.0.2.1"}, {}, FULL),
        ({"host": "localhost", "hostaddr": "::1,192.0.2.1"}, {}, FULL),
        ({}, {"PGHOSTADDR": "192.0.2.1"}, FULL),
        ({"host": "localhost", "hostaddr": "127.0.0.1"}, {}, {}),
        ({"host": "localhost.example"}, {}, FULL),
        ({}, {"PGHOST": "db.example"}, FULL),
        ({"host": "db.example", "sslmode": "disable"}, {}, {}),
        ({"host": "db.example"}, {"PGSSLMODE": "prefer"}, {}),
        ({"service": "l"}, {}, {}),
        ({"host": "db.example", "sslrootcert": "ca.crt"}, {}, {"sslmode": "verify-full"}),
    ],
)
def test_what_an_address_that_says_nothing_means(
    said: dict[str, Any], environment: dict[str, str], demanded: dict[str, str], tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path)}
    assert proof_demanded(said, environment | home) == demanded
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").touch()
    assert proof_demanded(said, environment | home).get("sslrootcert") is None
