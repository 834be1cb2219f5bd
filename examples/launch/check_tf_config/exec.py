"""Checks TF_CONFIG and its kin by TensorFlow's rules. Exits 1 with what is wrong.

The members also ask each other, at the addresses that TF_CONFIG has, whether they are who they should be there and know the
same cluster. An evaluator asks nobody: it is outside. As in TensorFlow, ps and evaluator wait until they are stopped; the
others end when all are right.

HOLD  a file: while it exists, nobody ends who is right
"""

import json
import os
import signal
import socket
import socketserver
import sys
import threading
import time

ROLES = ("chief", "worker", "ps", "evaluator")
PATIENCE = 60  # seconds in which all others are there


def is_address(text):
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    return host != "" and port.isdigit() and 0 < int(port) < 65536


def find_cluster_problems(cluster):
    if not isinstance(cluster, dict) or not cluster:
        return ["cluster must be an object of roles"]
    problems = []
    for role, addresses in cluster.items():
        if role not in ROLES:
            problems.append("%s is no role: there are %s" % (role, ", ".join(ROLES)))
        if not isinstance(addresses, list) or not addresses:
            problems.append("%s must be a list of addresses" % role)
            continue
        if role in ("chief", "evaluator") and len(addresses) > 1:
            problems.append("there may be one %s, and are %d" % (role, len(addresses)))
        problems += ["%s: %s is not HOST:PORT" % (role, address) for address in addresses if not is_address(address)]
    if problems:
        return problems
    every = [address for addresses in cluster.values() for address in addresses]
    return ["%s is there %d times" % (address, every.count(address)) for address in sorted(set(every))
            if every.count(address) > 1]


def find_task_problems(cluster, task):
    if not isinstance(task, dict):
        return ["task must be an object with type and index"]
    role, index = task.get("type"), task.get("index")
    if role not in ROLES:
        return ["task: %s is no role: there are %s" % (role, ", ".join(ROLES))]
    if role not in cluster:
        return ["task: there is no %s in the cluster" % role]
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(cluster[role]):
        return ["task: index must be below %d, the number of %s, and is %s" % (len(cluster[role]), role, index)]
    return []


def find_variable_problems(cluster, task, env):
    """Chief and workers are ranks, the chief first. Nobody else is one."""
    ranks = cluster.get("chief", []) + cluster.get("worker", [])
    own = cluster[task["type"]][task["index"]]
    expected = {"NUM_WORKERS": str(len(ranks)), "WORLD_SIZE": str(len(ranks)) if ranks else None,
                "RANK": str(ranks.index(own)) if own in ranks else None,
                "MASTER_ADDR": ranks[0].rpartition(":")[0].strip("[]") if ranks else None}
    return ["%s must be %s, and is %s" % (name, value or "unset", env.get(name, "unset"))
            for name, value in expected.items() if env.get(name) != value]


def find_problems(env):
    """What one member can see alone."""
    try:
        config = json.loads(env.get("TF_CONFIG", ""))
    except ValueError as error:
        return ["TF_CONFIG is no JSON: %s" % error]
    if not isinstance(config, dict):
        return ["TF_CONFIG must be an object with cluster and task"]
    cluster, task = config.get("cluster"), config.get("task")
    return (find_cluster_problems(cluster) or find_task_problems(cluster, task)
            or find_variable_problems(cluster, task, env))


def shared(cluster):
    """What all must know alike."""
    return {role: addresses for role, addresses in cluster.items() if role != "evaluator"}


class Answers(socketserver.ThreadingTCPServer):
    """Tells others what this member knows, and hears from them that they are content."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, config):
        self.config = config
        self.content = set()
        self.changed = threading.Condition()
        own = config["cluster"][config["task"]["type"]][config["task"]["index"]]
        super().__init__(("", int(own.rpartition(":")[2])), Answer)

    def await_content(self, names):
        with self.changed:
            return self.changed.wait_for(lambda: names <= self.content, PATIENCE)


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        content = json.loads(self.rfile.readline()).get("content")
        self.wfile.write(json.dumps(self.server.config).encode() + b"\n")  # first: this member may end with the next line
        if content:
            with self.server.changed:
                self.server.content.add(content)
                self.server.changed.notify_all()


def ask(address, question):
    host, _, port = address.rpartition(":")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=10) as connection:
                connection.sendall(json.dumps(question).encode() + b"\n")
                return json.loads(connection.makefile().readline())
        except (OSError, ValueError) as error:  # it is not there yet, or its name is not known yet
            if time.monotonic() > end:
                raise SystemExit("%s does not answer: %s" % (address, error))
            time.sleep(0.05)


def find_problem_of(role, index, address, cluster):
    config = ask(address, {})
    if config["task"] != {"type": role, "index": index}:
        return "%s must be %s %d, and is %s %d" % (address, role, index, config["task"]["type"], config["task"]["index"])
    if shared(config["cluster"]) != shared(cluster):
        return "%s %d knows another cluster: %s" % (role, index, shared(config["cluster"]))
    return None


def fail(problems):
    for problem in problems:
        print("TF_CONFIG is wrong: " + problem, file=sys.stderr, flush=True)
    sys.exit(1)


def main():
    problems = find_problems(os.environ)
    if problems:
        fail(problems)
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, role, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    others = {} if role == "evaluator" else {
        (kind, i): address for kind, addresses in shared(cluster).items() for i, address in enumerate(addresses)
        if (kind, i) != (role, index)}
    answers = Answers(config)
    threading.Thread(target=answers.serve_forever, daemon=True).start()
    problems = [find_problem_of(*other, address, cluster) for other, address in others.items()]
    if any(problems):
        fail(filter(None, problems))
    print("TF_CONFIG is right: %s %d of %d" % (role, index, len(cluster[role])), flush=True)
    for address in others.values():
        ask(address, {"content": "%s-%d" % (role, index)})
    while role in ("ps", "evaluator"):
        signal.pause()
    if not answers.await_content({"%s-%d" % other for other in others}):
        fail(["the others did not all say that theirs is right"])
    while os.path.exists(os.environ.get("HOLD", "")):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
