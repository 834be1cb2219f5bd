"""A program at a terminal, as a person has it: what it shows is read, and keys are pressed."""

import os
import pty
import re
import select
import signal
import time


class Terminal:
    def __init__(self, command, env, columns=100):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(env)
            os.environ.pop("COLUMNS", None)
            import fcntl
            import struct
            import termios
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execvp(command[0], command)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def _read(self, seconds):
        """False: the program is gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # what Linux says when the other end is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)

    def await_text(self, pattern, seconds=60):
        """Until it is shown, and forgets all up to there. What was shown before it is given."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.shown)):
            if time.monotonic() > deadline or not self._read(0.2):
                raise AssertionError("%r was not shown:\n%s" % (pattern, self.shown))
        before, self.shown = self.shown[:match.end()], self.shown[match.end():]
        return before

    def end(self, seconds=60):
        """Waits for its end: the exit code, and what it showed since."""
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            if time.monotonic() > deadline:
                raise AssertionError("it does not end:\n%s" % self.shown)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        self.pid = 0
        return os.waitstatus_to_exitcode(status), self.shown

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.fd)
            self.pid = 0
