"""Requests byte by byte, for what no client library would send."""

import http.client
import os
import socket
import ssl
import tempfile
import urllib.parse

PATIENCE = 20  # seconds; a server that is blocked stays blocked for longer


class Wire:
    def __init__(self, cluster):
        self.access = cluster.access()
        at = urllib.parse.urlsplit(self.access["server"])
        self.host, self.port = at.hostname, at.port

    def context(self, certificate=None, key=None):
        context = ssl.create_default_context(cadata=self.access["ca"].decode())
        if certificate:
            with tempfile.TemporaryDirectory() as folder:
                paths = []
                for name, pem in (("crt", certificate), ("key", key)):
                    paths.append(os.path.join(folder, name))
                    with open(os.open(paths[-1], os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                        file.write(pem)
                context.load_cert_chain(*paths)
        return context

    def connect(self):
        """A socket, without TLS."""
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def connect_tls(self, context=None):
        return (context or self.context()).wrap_socket(self.connect(), server_hostname=self.host)

    def ask(self, method, path, body=None, headers=None, context=None, token=True):
        """(code, body) of one request on a connection of its own."""
        if token:
            headers = {"Authorization": "Bearer " + self.access["token"], **(headers or {})}
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE, context=context or self.context())
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def send(self, *pieces):
        """The answer's code to these bytes, or None if there was only the end of the connection."""
        with self.connect_tls() as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece if isinstance(piece, bytes) else piece.encode())
            except OSError:
                pass  # it may have answered, and closed, before it had heard everything
            try:
                line = connection.makefile("rb").readline()
            except OSError:
                return None
        return int(line.split()[1]) if line else None

    def head(self, method, path, *lines):
        """The head of a request that may come in."""
        return "\r\n".join(["%s %s HTTP/1.1" % (method, path), "Host: it", "Authorization: Bearer " + self.access["token"],
                            *lines, "", ""])
