"""The agent as a part of the trainyard program: it has its own flags, help and exit codes.

usage: agent_cli_test.py TRAINYARD [unittest arguments]
"""

import os
import stat
import subprocess
import sys
import tempfile
import unittest

TRAINYARD = None


def run(*args):
    """Runs trainyard agent to its end, without a token."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
    return subprocess.run([TRAINYARD, "agent", *args], capture_output=True, timeout=300, env=environment, check=False)


class AgentCommand(unittest.TestCase):
    def test_shows_the_help_of_the_agent(self):
        for flag in ("--help", "-h"):
            shown = run(flag)
            self.assertEqual((shown.returncode, shown.stderr), (0, b""))
            self.assertTrue(shown.stdout.startswith(b"trainyard-agent runs one training script"), shown.stdout)
            self.assertIn(b"--term-grace TIME", shown.stdout)

    def test_hands_on_every_argument_and_the_exit_code(self):
        for args, said in (((), b"there is no token"), (("--none", "x"), b"unknown argument '--none'"),
                           (("install",), b"install needs --to FILE"), (("--log-level", "debug"), b"'--log-level'")):
            refused = run(*args)
            self.assertEqual(refused.returncode, 2, refused)
            self.assertTrue(refused.stderr.startswith(b"trainyard-agent: "), refused.stderr)
            self.assertIn(said, refused.stderr)

    def test_installs_the_small_program_and_not_itself(self):
        with tempfile.TemporaryDirectory(prefix="trainyard-e2e.") as folder:
            path = os.path.join(folder, "agent")
            self.assertEqual(run("install", "--to", path).returncode, 0)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o755)
            self.assertLess(os.stat(path).st_size, 3 << 20)
            version = subprocess.run([path, "--version"], capture_output=True, timeout=300, check=True).stdout
            self.assertEqual(version, run("--version").stdout)


if __name__ == "__main__":
    TRAINYARD = sys.argv.pop(1)
    unittest.main()
