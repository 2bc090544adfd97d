"""TLS, certificates and keys towards a real server: a proxy that ends TLS stands in front of it."""

import http.server
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.services import service_url
from vimbank.errors import ConfigError
from vimbank.indexes.elasticsearch.client import ElasticsearchClient

pytestmark = pytest.mark.services
KEY = "aWQ6c2VjcmV0"


@dataclass
class Proxy:
    """A server with a certificate of its own that hands every request on; ``seen``: the credentials that came."""

    url: str
    certificate: Path
    seen: list[str | None] = field(default_factory=list)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate of 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "ca.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def proxy(certificate: tuple[Path, Path]) -> Iterator[Proxy]:
    target = service_url("ELASTICSEARCH_B")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            proxy.seen.append(self.headers["Authorization"])
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: value for name, value in self.headers.items() if name.lower() in ("accept", "content-type")}
            request = urllib.request.Request(target + self.path, body or None, kept, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    self.pass_on(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as refusal:
                self.pass_on(refusal.code, refusal.headers, refusal.read())

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

        def pass_on(self, status: int, headers: object, body: bytes) -> None:
            self.send_response(status)
            for name in ("Content-Type", "X-Elastic-Product"):
                if (value := headers.get(name)) is not None:  # type: ignore[attr-defined]
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust the certificate hangs up: that is what is tested."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    # The handshake belongs to each request's thread, so that one who hangs up holds nobody else up.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy = Proxy(f"https://127.0.0.1:{server.server_port}", certificate[0])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield proxy
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_whose_certificate_is_trusted_gets_the_key(proxy: Proxy) -> None:
    client = ElasticsearchClient.connect([proxy.url], api_key=KEY, ca_certs=proxy.certificate, request_timeout_s=30)
    assert client.check().startswith("7.")
    client.close()
    assert proxy.seen == [f"ApiKey {KEY}"]


def test_name_and_password_go_over_tls(proxy: Proxy) -> None:
    client = ElasticsearchClient.connect(
        [proxy.url], username="elastic", password="hush", ca_certs=proxy.certificate, request_timeout_s=30
    )
    client.check()
    client.close()
    assert proxy.seen == ["Basic ZWxhc3RpYzpodXNo"]


def test_a_certificate_that_nobody_trusts_is_refused_before_the_key_is_sent(proxy: Proxy) -> None:
    client = ElasticsearchClient.connect([proxy.url], api_key=KEY)
    with pytest.raises(ConfigError) as refused:
        client.check()
    client.close()
    assert "TLS" in str(refused.value)
    assert KEY not in str(refused.value)
    assert proxy.seen == []


def test_certificates_may_be_left_unchecked(proxy: Proxy) -> None:
    client = ElasticsearchClient.connect([proxy.url], api_key=KEY, verify_certs=False, request_timeout_s=30)
    assert client.check().startswith("7.")
    client.close()
