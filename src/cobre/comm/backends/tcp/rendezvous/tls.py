"""Optional encryption: TLS 1.3 with the certificates that the user configured."""

import ssl

from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailedError

TLS_ALERT, TLS_HANDSHAKE = b"\x15\x03", b"\x16\x03"  # the first bytes of records of these kinds


def server_context(config: TcpConfig) -> ssl.SSLContext | None:
    """The coordinator's context: presents its certificate, and requires the workers' if a CA is configured."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, config)
    # Without a configured CA there is nothing to verify workers against: their proof of the secret has to do. The
    # system's CAs would accept anybody with a public certificate.
    if config.tls_ca:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(config: TcpConfig) -> ssl.SSLContext | None:
    """A worker's context: verifies the coordinator's certificate and host name, and presents its own if it has one."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not config.tls_ca:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _load(context, config)
    return context


def ring_server_context(config: TcpConfig) -> ssl.SSLContext | None:
    """A host's context for its left neighbour, whose proof of the secret authenticates it: it dials the right host."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The neighbour never reads from this connection. Tickets left unread would make its close() a reset, which discards
    # data that is still on its way.
    context.num_tickets = 0
    _load(context, config)
    return context


def ring_client_context(config: TcpConfig) -> ssl.SSLContext | None:
    """A host's context for its right neighbour: the caller compares the certificate with the one announced."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # names say nothing here: the digest of the certificate is known
    context.verify_mode = ssl.CERT_NONE
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
            "tcp", f"cannot load the TLS files (COBRE_TCP_TLS_CERT, COBRE_TCP_TLS_KEY, COBRE_TCP_TLS_CA): {error}"
        ) from error
