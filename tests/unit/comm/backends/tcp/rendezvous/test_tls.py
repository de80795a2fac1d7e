"""Configured certificates: which are trusted, and errors for unreadable ones."""

import ssl
from pathlib import Path

import pytest

from cobre.comm import InitializationFailedError, TcpConfig
from cobre.comm.backends.tcp.rendezvous.listener import client_context, server_context

TLS = Path(__file__).parents[5] / "support" / "tls"
OWN = {"tls_cert": str(TLS / "certificate.pem"), "tls_key": str(TLS / "key.pem")}
CA = {"tls_ca": str(TLS / "certificate.pem")}


def config(**options):
    return TcpConfig("127.0.0.1", 1, 2, **options)


def test_tls_is_off_without_files():
    assert server_context(config()) is None and client_context(config()) is None


def test_client_certificate_is_required_only_with_ca():
    assert server_context(config(**OWN)).verify_mode is ssl.CERT_NONE
    assert server_context(config(**OWN, **CA)).verify_mode is ssl.CERT_REQUIRED


def test_worker_always_checks_the_coordinator():
    """Against the system's authorities when none is configured."""
    for options in (OWN, CA, OWN | CA):
        context = client_context(config(**options))
        assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
        assert bool(context.cert_store_stats()["x509"]) or "tls_ca" not in options


@pytest.mark.parametrize("files", [{**OWN, "tls_key": "no such file"}, {**OWN, "tls_ca": str(TLS / "key.pem")}])
def test_files_that_cannot_be_loaded_are_named_by_their_variables(files):
    for make in (server_context, client_context):
        with pytest.raises(InitializationFailedError, match="COBRE_TCP_TLS_KEY"):
            make(config(**files))
