"""The kv commands as a user types them: real stores, real etcd, and every kind of bad input.

usage: kv_cli_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TRAINYARD = None


def run(*args, stdin=b"", env=None, **kwargs):
    """Runs trainyard to its end."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
    environment.update(env or {})
    return subprocess.run([TRAINYARD, *args], input=stdin, capture_output=True, timeout=300,
                          env=environment, check=False, **kwargs)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-e2e.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = "embedded:" + os.path.join(self.folder, "store")

    def kv(self, *args, **kwargs):
        return run("kv", *args, "--store", self.store, **kwargs)

    def ok(self, *args, **kwargs):
        done = self.kv(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fails(self, done, code, *parts):
        """The command ended with `code`, printed no result and one line that has all parts."""
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(message.count("\n"), 1, message)
        for part in parts:
            self.assertIn(part, message)


class EmbeddedStore(Case):
    def test_keeps_what_was_put(self):
        revision = int(self.ok("put", "a/1", "one"))
        self.ok("put", "a/2", "two words")
        self.assertEqual(self.ok("get", "a/1"), "one")
        self.assertEqual(self.ok("put", "a/1", "uno").strip(), str(revision + 2))
        self.assertEqual(self.ok("get", "a/1", "--revision", str(revision)), "one")
        self.assertEqual(self.ok("range", "a/", "-o", "name"), "a/1\na/2\n")
        self.assertEqual(self.ok("del", "a/1"), "1\n")
        self.assertEqual(self.ok("del", "a/", "--prefix"), "1\n")
        self.assertEqual(self.ok("del", "a/", "--prefix"), "0\n")

    def test_prints_tables_and_json(self):
        self.ok("put", "k", "v\n" + "x" * 100)
        table = self.ok("range", "").splitlines()
        self.assertRegex(table[0], r"^KEY +REVISION +VALUE$")
        self.assertRegex(table[1], r"^k +2 +v\\nx+… \(102 B\)$")
        self.assertRegex(self.ok("range", "", "-o", "wide"), r"CREATED +MODIFIED +VERSION")
        rows = [json.loads(line) for line in self.ok("range", "", "-o", "json").splitlines()]
        self.assertEqual(rows, [{"key": "k", "value": "v\n" + "x" * 100, "create_revision": 2,
                                 "mod_revision": 2, "version": 1}])
        self.assertEqual(json.loads(self.ok("get", "k", "-o", "json")), rows[0])

    def test_passes_binary_values_through_unchanged(self):
        value = bytes(range(256)) * 100
        done = self.kv("put", "bin", "-f", "-", stdin=value)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.kv("get", "bin").stdout, value)
        self.assertIn("value_base64", self.ok("get", "bin", "-o", "json"))

    def test_stores_values_of_any_size_in_chunks(self):
        path = os.path.join(self.folder, "large")
        value = os.urandom(5 << 20)
        with open(path, "wb") as file:
            file.write(value)
        self.fails(self.kv("put", "large", "-f", path), 1, "1.5 MiB", "--chunked")
        self.ok("put", "large", "-f", path, "--chunked")
        self.assertEqual(self.kv("get", "large", "--chunked").stdout, value)
        self.assertEqual(self.ok("del", "large", "--chunked"), "1\n")
        self.assertEqual(self.ok("range", "", "-o", "name"), "")

    def test_puts_only_if_the_condition_holds(self):
        revision = self.ok("put", "k", "1", "--if-absent").strip()
        self.fails(self.kv("put", "k", "2", "--if-absent"), 1, "was left as it is", "revision " + revision)
        self.ok("put", "k", "2", "--if-revision", revision)
        self.fails(self.kv("put", "k", "3", "--if-revision", revision), 1, "was left as it is")
        self.assertEqual(self.ok("get", "k"), "2")

    def test_shows_history(self):
        self.ok("put", "k", "1")
        self.ok("put", "k", "2")
        self.ok("del", "k")
        events = self.ok("watch", "", "--from-revision", "1", "--count", "3")
        self.assertEqual(events, "PUT 2 k 1\nPUT 3 k 2\nDELETE 4 k\n")

    def test_every_flag_has_an_environment_variable(self):
        self.ok("put", "k", "1")
        done = run("kv", "range", "", env={"TRAINYARD_STORE": self.store, "TRAINYARD_KV_RANGE_OUTPUT": "name"})
        self.assertEqual(done.stdout, b"k\n")
        done = run("kv", "put", "k", "2", env={"TRAINYARD_HOME": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.ok("get", "k"), "2", "the default is $TRAINYARD_HOME/store")

    def test_loses_nothing_to_sigkill(self):
        self.ok("put", "k", "1")
        watch = subprocess.Popen([TRAINYARD, "kv", "watch", "", "--store", self.store], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        self.assertEqual(watch.stdout.readline(), b"LIST 2 k 1\n")
        self.fails(self.kv("get", "k"), 1, "is in use by process %d" % watch.pid)
        watch.send_signal(signal.SIGKILL)
        watch.wait()
        watch.stdout.close()
        self.assertEqual(self.ok("get", "k"), "1")


class BadInput(Case):
    def test_usage(self):
        self.fails(run(), 2, "a command is missing: there are up, down, ")
        self.fails(run("kvv"), 2, "unknown command 'kvv'", "there are up, down, status, apply, run, get")
        self.fails(run("kv", "gte"), 2, "unknown command 'gte'", "get, put, del, range, watch")
        self.fails(run("kv", "get"), 2, "KEY is required")
        self.fails(run("kv", "get", "a", "b"), 2, "unexpected argument 'b'")
        self.fails(self.kv("get", "a", "-o", "xml"), 2, "'xml' is not one of value, json")
        self.fails(self.kv("put", "a"), 2, "give either a VALUE or --file")
        self.fails(self.kv("range", "a", "--limit", "many"), 2, "'many' is no whole number")
        self.fails(self.kv("put", "a", "1", "--ttl", "soon"), 2, "'soon' is no time")
        self.fails(self.kv("put", "a", "1", "--ttl", "-5s"), 2, "time to live must be above 0")
        self.fails(self.kv("del", "", "--prefix"), 2, "KEY must not be empty")
        self.assertEqual(os.listdir(self.folder), [], "and none of it made a store")

    def test_wrong_url(self):
        for url, part in [("nonsense", "use embedded:PATH, etcd://HOST:PORT"),
                          ("etcd://", "is not HOST or HOST:PORT"),
                          ("etcd://h:p", "'h:p' is not HOST or HOST:PORT"),
                          ("embedded:", "a folder must follow")]:
            self.fails(run("kv", "get", "k", "--store", url), 2, "bad store URL '%s'" % url, part)

    def test_store_that_is_not_there(self):
        self.fails(self.kv("get", "k"), 1, "there is no store in %s/store: check the path" % self.folder)
        self.assertEqual(os.listdir(self.folder), [], "and none was made")

    def test_unreachable_etcd(self):
        address = "127.0.0.1:%d" % free_port()
        for command in (["get", "k"], ["put", "k", "v"], ["watch", "k"], ["range", ""], ["del", "k"]):
            self.fails(run("kv", *command, "--store", "etcd://" + address), 1,
                       "etcd at " + address, "check that it runs and that the address is right")

    def test_missing_key_and_lost_precondition(self):
        self.ok("put", "there", "1")
        self.fails(self.kv("get", "k"), 1, "there is no key 'k' in embedded:")
        self.fails(self.kv("del", "k"), 1, "there is no key 'k' in embedded:")
        self.fails(self.kv("get", "there", "--revision", "99"), 1, "has not happened yet")

    def test_truncated_file(self):
        self.ok("put", "k", "1")
        path = os.path.join(self.folder, "store", "00000001.seg")
        size = os.path.getsize(path)
        os.truncate(path, size - 1)
        self.fails(self.kv("get", "k"), 1, path, "it has %d bytes instead of %d" % (size - 1, size), "put back a copy")
        self.assertEqual(os.path.getsize(path), size - 1, "nothing of it was changed")
        os.truncate(path, size)
        self.assertEqual(self.ok("get", "k"), "1")

    def test_damaged_file(self):
        self.ok("put", "k", "precious")
        path = os.path.join(self.folder, "store", "00000001.seg")
        with open(path, "r+b") as file:
            content = file.read()
            at = content.index(b"precious")
            file.seek(at)
            file.write(b"P")
        self.fails(self.kv("get", "k"), 1, path + " is damaged at byte 64")
        self.fails(self.kv("put", "k", "2"), 1, path + " is damaged at byte 64")
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(b"p")
        self.assertEqual(self.ok("get", "k"), "precious")

    def test_folder_of_something_else(self):
        folder = os.path.join(self.folder, "store")
        os.mkdir(folder)
        with open(os.path.join(folder, "thesis.tex"), "w", encoding="ascii") as file:
            file.write("years of work")
        self.fails(self.kv("put", "k", "1"), 1, "is not a store: it holds thesis.tex")
        self.assertEqual(os.listdir(folder), ["thesis.tex"])

    def mount(self, *options):
        """A small file system of its own, or a skipped test where that is not allowed."""
        point = os.path.join(self.folder, "mount")
        os.makedirs(point, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", point], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("SKIPPED: cannot mount a tmpfs here: " + done.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False)
        return point

    def test_full_disk(self):
        point = self.mount("-o", "size=4m")
        self.store = "embedded:" + os.path.join(point, "store")
        value = "x" * 400000
        stored = []
        for i in range(20):
            done = self.kv("put", "k%d" % i, "-f", "-", stdin=value.encode())
            if done.returncode != 0:
                break
            stored.append("k%d" % i)
        self.fails(done, 1, "No space left on device", os.path.join(point, "store"))
        self.assertGreater(len(stored), 1)
        self.assertEqual(self.ok("range", "", "-o", "name").split(), sorted(stored), "nothing was lost")
        self.assertEqual(self.ok("get", stored[0]), value)
        subprocess.run(["mount", "-o", "remount,size=16m", point], check=True)
        self.ok("put", "after", "1")
        self.assertEqual(self.ok("get", "after"), "1")

    def test_disk_too_small_for_any_store(self):
        point = self.mount("-o", "size=64k")
        self.store = "embedded:" + os.path.join(point, "store")
        self.fails(self.kv("put", "k", "1"), 1, "No space left on device")

    def test_read_only_folder(self):
        point = self.mount("-o", "size=8m")
        self.store = "embedded:" + os.path.join(point, "store")
        self.ok("put", "k", "1")
        subprocess.run(["mount", "-o", "remount,ro", point], check=True)
        self.fails(self.kv("put", "k", "2"), 1, "Read-only file system", os.path.join(point, "store"))
        self.store = "embedded:" + os.path.join(point, "other")
        self.fails(self.kv("put", "k", "2"), 1, "Read-only file system", os.path.join(point, "other"))
        subprocess.run(["mount", "-o", "remount,rw", point], check=True)
        self.store = "embedded:" + os.path.join(point, "store")
        self.assertEqual(self.ok("get", "k"), "1")

    def test_closed_standard_descriptors(self):
        self.ok("put", "k", "1")
        self.ok("put", "l", "1")
        for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
            for command in ("get k", "range '' --limit 1", "put k 1", "watch '' --timeout 10ms"):
                done = subprocess.run(["sh", "-c", "exec %s kv %s --store %s %s" %
                                       (TRAINYARD, command, self.store, closed)], capture_output=True, check=False)
                self.assertEqual(done.returncode, 1, command + closed + done.stderr.decode())
        self.assertEqual(self.ok("range", "", "-o", "name"), "k\nl\n", "what was printed landed in no file of the store")
        done = self.kv("put", "k", "-f", "-", preexec_fn=lambda: os.close(0), stdin=None)
        self.fails(done, 1, "cannot read standard input")
        self.assertEqual(self.ok("get", "k"), "1")

    def test_files_that_hold_no_value(self):
        self.fails(self.kv("put", "k", "-f", "/"), 1, "cannot read /: Is a directory")
        self.fails(self.kv("put", "k", "-f", "/no/such"), 1, "cannot read /no/such: No such file")
        self.fails(self.kv("put", "k", "-f", "/dev/zero"), 1, "/dev/zero has more than 1.5 MiB", "--chunked")

    def test_stale_manifest(self):
        self.ok("put", "k0", "1")
        manifest = os.path.join(self.folder, "store", "MANIFEST")
        shutil.copy(manifest, os.path.join(self.folder, "old"))
        for i in range(7):
            self.ok("put", "k%d" % i, "-f", "-", stdin=b"x" * 700000)
        files = sorted(os.listdir(os.path.dirname(manifest)))
        shutil.copy(manifest, os.path.join(self.folder, "new"))
        shutil.copy(os.path.join(self.folder, "old"), manifest)
        self.fails(self.kv("range", ""), 1, "MANIFEST is out of date")
        self.assertEqual(sorted(os.listdir(os.path.dirname(manifest))), files)
        shutil.copy(os.path.join(self.folder, "new"), manifest)
        self.assertEqual(len(self.ok("range", "", "-o", "name").split()), 7)

    def test_no_home(self):
        done = subprocess.run(["env", "-u", "HOME", "-u", "TRAINYARD_HOME", "-u", "TRAINYARD_STORE", TRAINYARD, "kv", "put", "k", "1"],
                              capture_output=True, check=False)
        self.fails(done, 2, "HOME is not set")

    def test_file_size_limit(self):
        self.ok("put", "k", "1")
        done = subprocess.run(["sh", "-c", "ulimit -f 1500; exec \"$0\" kv put big -f - --store \"$1\"", TRAINYARD, self.store],
                              input=b"x" * 1400000, capture_output=True, check=False)
        self.fails(done, 1, "File too large")
        self.assertEqual(self.ok("get", "k"), "1")

    def test_full_standard_output(self):
        self.ok("put", "k", "1")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TRAINYARD, "kv", "get", "k", "--store", self.store], stdout=full,
                                  stderr=subprocess.PIPE, timeout=300, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write to standard output: No space left on device", done.stderr)


class RealEtcd(Case):
    def setUp(self):
        super().setUp()
        client, peer = free_port(), free_port()
        self.etcd = subprocess.Popen(
            ["etcd", "--data-dir", os.path.join(self.folder, "etcd"), "--logger", "zap", "--log-level", "error",
             "--listen-client-urls", "http://127.0.0.1:%d" % client,
             "--advertise-client-urls", "http://127.0.0.1:%d" % client,
             "--listen-peer-urls", "http://127.0.0.1:%d" % peer,
             "--initial-advertise-peer-urls", "http://127.0.0.1:%d" % peer,
             "--initial-cluster", "default=http://127.0.0.1:%d" % peer])
        self.addCleanup(self.etcd.wait)
        self.addCleanup(self.etcd.kill)
        self.store = "etcd://127.0.0.1:%d" % client
        deadline = time.monotonic() + 60
        while self.kv("range", "").returncode != 0:
            self.assertLess(time.monotonic(), deadline, "etcd did not start")

    def test_reads_what_etcdctl_writes_and_the_other_way_round(self):
        ctl = ["etcdctl", "--endpoints", self.store[len("etcd://"):]]
        environment = dict(os.environ, ETCDCTL_API="3")
        subprocess.run([*ctl, "put", "from/etcdctl", "1"], env=environment, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.ok("get", "from/etcdctl"), "1")
        self.ok("put", "from/trainyard", "2")
        got = subprocess.run([*ctl, "get", "--print-value-only", "from/trainyard"], env=environment, check=True,
                             capture_output=True)
        self.assertEqual(got.stdout, b"2\n")

    def test_watches_live_and_lists_again_after_a_compaction(self):
        self.ok("put", "k", "1")
        with subprocess.Popen([TRAINYARD, "kv", "watch", "", "--count", "2", "--store", self.store],
                              stdout=subprocess.PIPE) as watch:
            self.assertRegex(watch.stdout.readline(), rb"LIST \d+ k 1")
            self.ok("put", "k", "2")
            self.ok("del", "k")
            self.assertRegex(watch.stdout.read(), rb"^PUT \d+ k 2\nDELETE \d+ k\n$")
        last = int(self.ok("put", "other", "3"))
        subprocess.run(["etcdctl", "--endpoints", self.store[len("etcd://"):], "compact", str(last)],
                       env=dict(os.environ, ETCDCTL_API="3"), check=True, stdout=subprocess.DEVNULL)
        seen = self.ok("watch", "", "--from-revision", "2", "--timeout", "3s")
        self.assertEqual(seen, "RELIST %d\nLIST %d other 3\n" % (last, last))

    def test_deletes_a_key_when_its_time_is_over(self):
        self.ok("put", "k", "1", "--ttl", "1s")
        self.assertRegex(self.ok("range", "", "-o", "wide"), r"k +\d+ +\d+ +1 +\d+ ")
        self.assertRegex(self.ok("watch", "k", "--count", "1"), r"DELETE \d+ k\n$")


if __name__ == "__main__":
    TRAINYARD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
