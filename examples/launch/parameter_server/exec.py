"""A line through points, with parameter servers: plain Python and NumPy, told by TF_CONFIG who is who.

Each ps has a part of the weights and serves it at its address, until it is stopped. Each worker has a part of the points: it
pulls the weights, computes the gradient of a few points, and pushes it. Workers do not wait for each other, and one that
comes back goes on with what the servers have.

STEPS  steps of each worker (2000)
"""

import json
import os
import socket
import socketserver
import struct
import threading
import time

import numpy as np

SIZE, POINTS, NOISE = 50, 4000, 0.05  # the loss that is left is NOISE squared
BATCH, RATE = 32, 0.02
STEPS = int(os.environ.get("STEPS", "2000"))
PATIENCE = 60  # seconds in which a server is there, or is taken for lost
PULL, PUSH = 0, 1


def receive(file, kind):
    header = file.read(8)
    if len(header) < 8:
        raise ConnectionError("the connection has ended")
    word, size = struct.unpack(">II", header)
    data = file.read(size)
    if len(data) < size:
        raise ConnectionError("the connection has ended within a message")
    return word, np.frombuffer(data, kind)


def message(word, values=()):
    data = np.asarray(values, np.float64).tobytes()
    return struct.pack(">II", word, len(data)) + data


class Shard(socketserver.ThreadingTCPServer):
    """One part of the weights."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port, size):
        super().__init__(("", port), Requests)
        self.lock = threading.Lock()
        self.weights = np.zeros(size)


class Requests(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        try:
            while True:
                word, values = receive(self.rfile, np.float64)
                with self.server.lock:
                    if word == PUSH:
                        self.server.weights -= RATE * values
                    answer = message(word, self.server.weights if word == PULL else ())
                self.wfile.write(answer)
        except ConnectionError:
            pass  # the worker is done, or lost


class Connection:
    """To one server. What fails is tried again: names may be known a moment later than they are told."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.address = (host.strip("[]"), int(port))
        self.socket = None

    def call(self, word, values=()):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if self.socket is None:
                    self.socket = socket.create_connection(self.address, timeout=10)
                    self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.file = self.socket.makefile("rb")
                self.socket.sendall(message(word, values))
                return receive(self.file, np.float64)[1]
            except OSError as error:
                self.close()
                if time.monotonic() > end:
                    raise SystemExit("%s:%d has not answered for %d s: %s" % (*self.address, PATIENCE, error))
                time.sleep(0.1)

    def close(self):
        if self.socket is not None:
            self.file.close()
            self.socket.close()
            self.socket = None


def make_points():
    """The same on all."""
    random = np.random.default_rng(7)
    x = random.normal(size=(POINTS, SIZE))
    return x, x @ random.normal(size=SIZE) + NOISE * random.normal(size=POINTS)


def work(servers, index, count):
    connections = [Connection(address) for address in servers]
    x, y = make_points()
    mine_x, mine_y = x[index::count], y[index::count]
    random = np.random.default_rng()

    def pull():
        return np.concatenate([connection.call(PULL) for connection in connections])

    for step in range(STEPS):
        weights = pull()
        if step % 500 == 0:
            print("step %d: loss %.4f" % (step, np.mean((mine_x @ weights - mine_y) ** 2)), flush=True)
        chosen = random.integers(0, len(mine_y), BATCH)
        error = mine_x[chosen] @ weights - mine_y[chosen]
        gradient = mine_x[chosen].T @ error / BATCH
        for connection, part in zip(connections, np.array_split(gradient, len(connections))):
            connection.call(PUSH, part)
    if index == 0:
        print("loss %.4f" % np.mean((x @ pull() - y) ** 2), flush=True)


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, role, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    servers, workers = cluster.get("ps", []), cluster.get("worker", [])
    if role == "ps":
        port = int(servers[index].rpartition(":")[2])
        size = len(np.array_split(np.zeros(SIZE), len(servers))[index])
        with Shard(port, size) as shard:
            print("serves %d of %d weights" % (size, SIZE), flush=True)
            shard.serve_forever()
    elif role == "worker":
        if not servers:
            raise SystemExit("there is no parameter server: launch with --strategy ParameterServer --ps-num 1")
        work(servers, index, len(workers))
    else:
        raise SystemExit("nothing to do for a %s: launch without it" % role)


if __name__ == "__main__":
    main()
