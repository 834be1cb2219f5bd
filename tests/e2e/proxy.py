"""Something between the operator and the API server that refuses, delays or looks at what passes."""

import http.client
import http.server
import json
import socket
import threading

HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive", "authorization", "host", "accept-encoding")


class Proxy:
    """Plain HTTP on loopback in front of a cluster, which it speaks with as the cluster's own user.

    `rule(method, path, body)` is asked before a request goes on: a code refuses it, None lets it pass. `after` is asked
    in the same way when the server has answered, and a code takes the place of the answer.
    """

    def __init__(self, wire):
        self.wire = wire
        self.rule = self.after = lambda method, path, body: None
        self.seen = []  # (method, path)
        self.refused = []
        self.streams = set()  # sockets of watches
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                outer.serve(self)
            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # whoever asked was killed meanwhile

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.cut()

    def cut(self):
        """Ends all watches that are under way."""
        for stream in list(self.streams):
            try:
                socket.socket.shutdown(stream, socket.SHUT_RDWR)  # whoever reads from it finds its end
            except OSError:
                pass  # it has ended by itself

    def serve(self, asker):
        body = asker.rfile.read(int(asker.headers.get("Content-Length") or 0))
        self.seen.append((asker.command, asker.path))
        code = self.rule(asker.command, asker.path, body)
        if code:
            return self.refuse(asker, code)
        connection = http.client.HTTPSConnection(self.wire.host, self.wire.port, timeout=600, context=self.wire.context())
        stream = None
        try:
            connection.connect()
            stream = connection.sock
            headers = {k: v for k, v in asker.headers.items() if k.lower() not in HOP_BY_HOP}
            connection.request(asker.command, asker.path, body=body or None,
                               headers={**headers, "Authorization": "Bearer " + self.wire.access["token"]})
            answer = connection.getresponse()
            if "watch=" in asker.path:
                self.streams.add(stream)
                return self.stream(asker, answer)
            text = answer.read()
            code = self.after(asker.command, asker.path, body)
            if code:
                return self.refuse(asker, code)
            self.answer(asker, answer.status, answer.getheader("Content-Type") or "application/json", text)
        except (OSError, http.client.HTTPException):
            asker.close_connection = True
        finally:
            self.streams.discard(stream)
            connection.close()

    def refuse(self, asker, code):
        self.refused.append((asker.command, asker.path))
        reason = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests"}.get(code, "InternalError")
        self.answer(asker, code, "application/json", json.dumps(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
             "message": "refused by the test"}).encode())

    @staticmethod
    def answer(asker, code, kind, text):
        asker.send_response(code)
        asker.send_header("Content-Type", kind)
        asker.send_header("Content-Length", str(len(text)))
        asker.end_headers()
        asker.wfile.write(text)

    @staticmethod
    def stream(asker, answer):
        asker.close_connection = True
        asker.send_response(answer.status)
        asker.send_header("Content-Type", answer.getheader("Content-Type") or "application/json")
        asker.send_header("Transfer-Encoding", "chunked")
        asker.end_headers()
        while piece := answer.read1(65536):
            asker.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            asker.wfile.flush()
        asker.wfile.write(b"0\r\n\r\n")
