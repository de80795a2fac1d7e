"""Optional encryption: TLS 1.3 with the certificates that the user names."""

import ssl

from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailedError


def server_context(config: TcpConfig) -> ssl.SSLContext | None:
    """For the coordinator: shows its certificate, and asks for the workers' if a CA is named."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, config)
    # Without a CA of the user's own there is nothing to check workers against: their proof of the secret must do.
    if config.tls_ca:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(config: TcpConfig) -> ssl.SSLContext | None:
    """For a worker: checks the coordinator's certificate and name, and shows its own if it has one."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not config.tls_ca:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _load(context, config)
    return context


def _load(context: ssl.SSLContext, config: TcpConfig) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        if config.tls_cert:
            context.load_cert_chain(config.tls_cert, config.tls_key)
        if config.tls_ca:
            context.load_verify_locations(config.tls_ca)
    except (OSError, ssl.SSLError) as error:
        raise InitializationFailedError(
            "tcp", f"the TLS files cannot be used (COBRE_TCP_TLS_CERT, _KEY, _CA): {error}"
        ) from error
