"""The commands of a document, found and run as a reader would: one shell for each document, from its top to its end.

Blocks of the languages `console` (lines that begin with "$ "; the rest is what they print) and `sh` (every line) are commands. A
comment before a block, which nobody sees who reads the document, says what a test needs to know of it:

  <!-- run: VERB REST -->              of all commands of the block that follows
  <!-- run "TEXT": VERB REST -->       of those that contain the text
  <!-- run file: VERB REST -->         of the whole document; with a text, of the commands that contain it, wherever they are

  before: COMMANDS     run first: they make what the reader has
  after: COMMANDS      run then
  fails [TEXT]         must not exit 0, and must say so
  until TEXT           goes on for ever: is ended by Ctrl-C when it has printed this
  serves TEXT          runs beside the others from when it has printed this to the end of the document
  with ARGUMENTS       is run with these arguments too
  let WORD = WORDS     the word is replaced; what a reader has to fill in
  long                 takes longer than others: is begun first (file)
  ports N...           these ports are replaced by free ones (file)
  by FILE: TEXT        another test runs it: the file has this text, which is part of the command
  check: COMMANDS      cannot be run here; this is run in its place, and it is counted so
  kubernetes: COMMANDS is run where there is a real API server; elsewhere, and also there, this is run in its place
  example              what is shown is an example: it is not compared
  as FILE              the block is written to this file, whatever its language
"""

import ast
import os
import re
import signal
import socket
import subprocess
import threading
import time

import yaml

import processes

PATIENCE = 300  # seconds for one command
COMMENT = re.compile(r'<!-- run(?P<file> file)?(?: "(?P<selector>[^"]*)")?: (?P<verb>\w+):?(?P<rest>.*?)-->', re.S)
UNITS = ("B", "KiB", "MiB", "GiB")
OUR_KINDS = ("TFJob", "PyTorchJob", "AITrainingJob")


class Stuck(Exception):
    """The shell is not there for the next command."""


class Order:
    """One comment."""

    def __init__(self, match):
        self.whole_file = match["file"] is not None
        self.selector = match["selector"]
        self.verb = match["verb"]
        self.rest = match["rest"].strip()

    def is_for(self, command):
        return self.selector is None or self.selector in command


class Command:
    def __init__(self, text, line):
        self.text, self.line, self.shown = text, line, []


class Block:
    def __init__(self, language, line, orders):
        self.language, self.line, self.orders, self.lines = language, line, orders, []

    def text(self):
        return "\n".join(self.lines) + "\n"

    def commands(self):
        """Commands with what is shown below each; continued lines are one."""
        found, going_on = [], False
        for number, line in enumerate(self.lines, self.line + 1):
            begins = line.startswith("$ ") if self.language == "console" else bool(line.strip()) and not line.lstrip().startswith("#")
            if going_on:
                found[-1].text += "\n" + line
            elif begins:
                found.append(Command(line[2:] if self.language == "console" else line, number))
            elif found and self.language == "console":
                found[-1].shown.append(line)
            going_on = (going_on or begins) and line.endswith("\\")
        return found

    def all(self, verb, command=None):
        return [order for order in self.orders if order.verb == verb
                and (order.selector is None if command is None else order.is_for(command))]


def parse(text):
    """The blocks of a document, and what is said of all of it."""
    blocks, of_file, orders, inside, comment = [], [], [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is not None:
            if line.strip() == "```":
                blocks.append(inside)
                inside = None
            else:
                inside.lines.append(line)
        elif comment is not None or line.startswith("<!-- run"):
            comment = (comment + "\n" if comment else "") + line
            if "-->" in line:
                match = COMMENT.match(comment)
                if match is None:
                    raise AssertionError("line %d: '%s' is no order" % (number, comment))
                order = Order(match)
                (of_file if order.whole_file else orders).append(order)
                comment = None
        elif line.startswith("```"):
            inside = Block(line[3:].strip(), number, orders)
            orders = []
        elif line.strip() and orders:
            raise AssertionError("line %d: a comment that is not before a block" % number)
    return blocks, of_file


def pattern(line):
    """What a shown line looks like in truth: numbers, their units and widths differ, and … is anything."""
    parts = []
    for part in re.split(r"(…|\s+|\d[\d.,:]*)", line.strip()):
        if part == "…" or part == "...":
            parts.append(".*")
        elif part in UNITS:
            parts.append("(?:%s)" % "|".join(UNITS))
        elif part.isspace():
            parts.append(r"\s+")
        elif part[:1].isdigit():
            parts.append(r"[\d.,:]+")
        else:
            parts.append(re.escape(part))
    return "".join(parts)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Shell:
    """One bash that runs commands one after the other. What one changes (folder, variables, functions) the next one finds."""

    def __init__(self, folder, env):
        self.folder, self.number, self.beside = folder, 0, {}
        os.makedirs(os.path.join(folder, ".run"))
        read, write = os.pipe()
        self.status = os.fdopen(read, "r")
        # A test that runs in the background of a shell ignores Ctrl-C, and so would its children.
        self.process = subprocess.Popen(["env", "--default-signal=INT", "bash", "--noprofile", "--norc"], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=open(os.path.join(folder, ".run", "shell"), "w"),
                                        cwd=folder, env=env, text=True, pass_fds=[write], start_new_session=True)
        self.process.stdin.write("exec 200>&%d %d>&-\n" % (write, write))
        os.close(write)

    def children(self):
        return [pid for pid in processes.every() if processes.parent(pid) == self.process.pid and pid not in self.beside]

    def run(self, text, until=None, serves=None, patience=PATIENCE):
        """Exit code (None: it was ended when it had printed `until`) and output."""
        self.number += 1
        before = set(self.children())
        path = os.path.join(self.folder, ".run", "out-%d" % self.number)
        tail = " &" if serves else ""
        self.process.stdin.write("{ %s\n} >'%s' 2>&1 </dev/null 200>&-%s\necho $? >&200\n" % (text, path, tail))
        self.process.stdin.flush()
        answer = []
        reader = threading.Thread(target=lambda: answer.append(self.status.readline()), daemon=True)
        reader.start()
        end = time.monotonic() + patience
        while reader.is_alive():
            reader.join(0.05)
            if until and until in self.output(path):
                for pid in self.children():
                    self.signal(pid, signal.SIGINT)
                reader.join(10)
                if reader.is_alive():
                    raise Stuck("did not end by Ctrl-C: " + text)
                return None, self.output(path)
            if time.monotonic() > end:
                for pid in self.children():
                    self.signal(pid, signal.SIGKILL)
                raise Stuck("took more than %d s: %s\n%s" % (patience, text, self.output(path)))
        if not answer or not answer[0]:
            with open(os.path.join(self.folder, ".run", "shell"), encoding="utf-8") as file:
                raise Stuck("the shell ended with: %s\n%s\n%s" % (text, self.output(path), file.read()))
        if serves:
            while serves not in self.output(path):
                if time.monotonic() > end:
                    raise AssertionError("never printed '%s': %s\n%s" % (serves, text, self.output(path)))
                time.sleep(0.02)
            self.beside.update(dict.fromkeys(set(self.children()) - before))
        return int(answer[0]), self.output(path)

    @staticmethod
    def output(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def end(self):
        ended = [child for pid in self.beside for child in [pid, *(other for other in processes.every() if processes.parent(other) == pid)]]
        for pid in ended:
            self.signal(pid, signal.SIGTERM)
        end = time.monotonic() + 10
        while any(processes.started(pid) is not None for pid in ended) and time.monotonic() < end:
            time.sleep(0.02)
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.status.close()


class Document:
    """Runs one. `counts` has how many commands were run, by others, and only checked; `failures` what went wrong."""

    def __init__(self, root, name, shell, real_env=None):
        self.root, self.name, self.shell, self.real_env = root, name, shell, real_env
        self.counts = {"run": 0, "by another test": 0, "checked only": 0, "compiled or parsed": 0}
        self.failures, self.notes, self.compared, self.seconds = [], [], 0, 0
        with open(os.path.join(root, name), encoding="utf-8") as file:
            self.blocks, self.of_file = parse(file.read())
        self.replaced = {}
        for order in self.of_file:
            if order.verb == "ports":
                self.replaced.update((port, str(free_port())) for port in order.rest.split())

    def run(self):
        begin = time.monotonic()
        try:
            for order in self.of_file:
                if order.verb == "before" and order.selector is None:
                    self.prepare(order.rest, "the document")
            for block in self.blocks:
                self.run_block(block)
            for order in self.of_file:
                if order.verb == "after" and order.selector is None:
                    self.prepare(order.rest, "the document")
        except (AssertionError, Stuck) as error:
            self.failures.append("%s: %s" % (self.name, error))
        self.seconds = time.monotonic() - begin
        return self

    def prepare(self, text, where):
        code, output = self.shell.run(self.with_ports(text))
        if code != 0:
            raise AssertionError("%s: what is run before or after exited %d:\n%s\n%s" % (where, code, text, output))

    def with_ports(self, text):
        for port, other in self.replaced.items():
            text = re.sub(r"\b%s\b" % port, other, text)
        return text

    def run_block(self, block):
        where = "line %d" % block.line
        for order in block.all("before"):
            self.prepare(order.rest, where)
        for order in block.all("as"):
            with open(os.path.join(self.shell.folder, order.rest), "w", encoding="utf-8") as file:
                file.write(block.text())
        if block.language in ("console", "sh"):
            commands = block.commands()
            for order in block.orders:
                if order.selector is not None and not any(order.is_for(command.text) for command in commands):
                    raise AssertionError("%s: no command has '%s'" % (where, order.selector))
            for command in commands:
                self.run_command(block, command)
        elif block.language in ("bash", "shell", "zsh") or any(line.startswith("$ ") for line in block.lines):
            raise AssertionError("%s: commands are in blocks of the languages console or sh, not '%s'" % (where, block.language))
        elif block.language == "python":
            self.compile(block, where)
        elif block.language in ("yaml", "json"):
            self.accept(block, where)
        for order in block.all("after"):
            self.prepare(order.rest, where)

    def compile(self, block, where):
        try:
            ast.parse(block.text())
        except SyntaxError as error:
            self.failures.append("%s, %s: %s" % (self.name, where, error))
        self.counts["compiled or parsed"] += 1

    def accept(self, block, where):
        """That it can be read and, where it is one of our kinds, that `trainyard apply` takes it."""
        self.counts["compiled or parsed"] += 1
        try:
            documents = list(yaml.safe_load_all(block.text()))
        except yaml.YAMLError as error:
            self.failures.append("%s, %s: %s" % (self.name, where, error))
            return
        if any(isinstance(document, dict) and document.get("kind") in OUR_KINDS for document in documents):
            path = os.path.join(self.shell.folder, ".run", "manifest.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(block.text())
            code, output = self.shell.run("trainyard apply --dry-run -f '%s'" % path)
            if code != 0:
                self.failures.append("%s, %s: apply --dry-run exited %d:\n%s" % (self.name, where, code, output))

    def run_command(self, block, command):
        where = "%s:%d: %s" % (self.name, command.line, command.text)
        meant = [order for order in block.orders if order.is_for(command.text)]
        meant += [order for order in self.of_file if order.selector is not None and order.is_for(command.text)]
        orders = {order.verb: order.rest for order in meant}
        for order in meant:
            if order.verb == "before" and order.selector is not None:
                self.prepare(order.rest, where)
        try:
            if "by" in orders:
                self.see_other_test(orders["by"], command)
            elif "kubernetes" in orders and self.real_env is None or "check" in orders:
                self.check(orders.get("check", orders.get("kubernetes")), command)
            else:
                self.execute(block, command, orders)
        except AssertionError as error:
            self.failures.append("%s\n%s" % (where, error))
        for order in meant:
            if order.verb == "after" and order.selector is not None:
                self.prepare(order.rest, where)

    def see_other_test(self, rest, command):
        """That the test is there and has a part of the command, however it is quoted."""
        file, _, text = rest.partition(": ")
        path = os.path.join(self.root, file if "/" in file else os.path.join("tests", "e2e", file))
        if not os.path.exists(path):
            raise AssertionError("there is no %s" % file)
        with open(path, encoding="utf-8") as source:
            if not text or text not in source.read():
                raise AssertionError("%s has no '%s'" % (file, text))
        if re.sub(r"[\"',]", "", text) not in command.text:
            raise AssertionError("'%s' is no part of the command" % text)
        self.counts["by another test"] += 1

    def check(self, instead, command):
        code, output = self.shell.run(self.with_ports(instead))
        if code != 0:
            raise AssertionError("in its place '%s' was run; exited %d:\n%s" % (instead, code, output))
        self.counts["checked only"] += 1
        self.notes.append("%s:%d: %s" % (self.name, command.line, command.text.splitlines()[0]))

    def execute(self, block, command, orders):
        text = self.with_ports(command.text)
        for order in block.orders + self.of_file:
            if order.verb == "let" and order.is_for(command.text):
                word, _, other = order.rest.partition(" = ")
                text = text.replace(word, other)
        if "serves" in orders:
            text = re.sub(r"\s*&\s*$", "", text)
        if "with" in orders:
            text = re.sub(r"\s+#.*$", "", text) + " " + self.with_ports(orders["with"])
        if "kubernetes" in orders:
            namespace = re.search(r" -n (\S+)", text)
            make = "kubectl create namespace %s >/dev/null 2>&1;" % namespace[1] if namespace else ""
            text = "(export KUBECONFIG=%s; %s %s\n)" % (self.real_env["KUBECONFIG"], make, text)
        code, output = self.shell.run(text, orders.get("until"), orders.get("serves"))
        self.counts["run"] += 1
        if "fails" in orders:
            if not code or orders["fails"] not in output:
                raise AssertionError("was to fail%s, and exited %s:\n%s" % (
                    " with '%s'" % orders["fails"] if orders["fails"] else "", code, output))
        elif "until" in orders:
            if orders["until"] not in output:
                raise AssertionError("exited %s without '%s':\n%s" % (code, orders["until"], output))
        elif code != 0:
            raise AssertionError("exited %d:\n%s" % (code, output))
        if "example" not in orders:
            self.compare(command, output)

    def compare(self, command, output):
        for line in command.shown:
            if line.strip() and not re.search(pattern(self.with_ports(line)), output):
                raise AssertionError("did not print what is shown: %s\nbut:\n%s" % (line, output))
            self.compared += bool(line.strip())
