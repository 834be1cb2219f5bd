"""The processes of this machine, found by a mark in their environment or their arguments."""

import os


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has just ended


def every():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def started(pid):
    """When it started, in the kernel's ticks: together with its number it is never used twice. None: it has ended."""
    fields = read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None


def parent(pid):
    fields = read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return int(fields[1]) if fields else None


def environment_of(pid):
    return dict(entry.partition(b"=")[::2] for entry in read("/proc/%d/environ" % pid).split(b"\0") if entry)


def arguments(pid):
    return read("/proc/%d/cmdline" % pid).decode(errors="replace").split("\0")


def with_marks(**marks):
    """{pid: environment} of all that have each NAME=value in their environment."""
    wanted = {name.encode(): value.encode() for name, value in marks.items()}
    found = {}
    for pid in every():
        environment = environment_of(pid)
        if all(environment.get(name) == value for name, value in wanted.items()) and started(pid) is not None:
            found[pid] = environment
    return found


def with_mark(name, value):
    return with_marks(**{name: value})


def with_argument(text):
    """Those whose arguments contain the text, but for this one."""
    return {pid: read("/proc/%d/cmdline" % pid).replace(b"\0", b" ").decode(errors="replace") for pid in every()
            if pid != os.getpid() and text.encode() in read("/proc/%d/cmdline" % pid) and started(pid) is not None}
