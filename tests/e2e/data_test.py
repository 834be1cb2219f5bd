"""The data commands as a user types them: files of every format, damage to each byte of them, and bad input.

usage: data_test.py TRAINYARD [unittest arguments]
"""

import base64
import gzip
import json
import os
import pty
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

TRAINYARD = None

# What other writers of RecordIO have made.
TWO_CHUNKS = ("04030201 873a6795 00000000 11000000 02000000 05000000 3132333435 04000000 31323334"
              "04030201 9a5680f2 00000000 06000000 01000000 02000000 3132")
PLAIN = ("04030201 148c74a1 00000000 20000000 03000000 05000000 48656c6c6f 06000000 576f726c642c 09000000"
         "5265636f7264494f21")
SNAPPY = ("04030201 af2219b2 01000000 5a000000 03000000 ff060000734e61507059 01080000d9c69c43 05000000"
          "010900008aeeb9be 48656c6c6f 010800001c03ee55 06000000 010a0000629913bc 576f726c642c 01080000a5b1b5a7"
          "09000000 010d000097a1a571 5265636f7264494f21")
BUFFERED_SNAPPY = ("04030201 4c76a44b 01000000 32000000 03000000 ff060000734e61507059 01240000 2daf42ab"
                   "05000000 48656c6c6f 06000000 576f726c642c 09000000 5265636f7264494f21")
EMPTY_RECORD = "04030201 1cdf4421 00000000 04000000 01000000 00000000"
OLD_LAYOUT = "04030201 01000000 f604bf55 01000000 09000000 05000000 48656c6c6f"
HELLO = [b"Hello", b"World,", b"RecordIO!"]
KNOWN = [(TWO_CHUNKS, [b"12345", b"1234", b"12"]), (PLAIN, HELLO), (SNAPPY, HELLO), (BUFFERED_SNAPPY, HELLO),
         (EMPTY_RECORD, [b""]), (OLD_LAYOUT, [b"Hello"])]


def chunk(records):
    """A plain chunk, as docs/data.md says that one is written."""
    payload = b"".join(struct.pack("<I", len(record)) + record for record in records)
    return struct.pack("<5I", 0x01020304, zlib.crc32(payload), 0, len(payload), len(records)) + payload


def idx(items, code=8, shape=()):
    """An IDX file of bytes."""
    header = struct.pack(">BBBB%dI" % (1 + len(shape)), 0, 0, code, 1 + len(shape), len(items), *shape)
    return header + b"".join(items)


def run(*args, env=None, **kwargs):
    """Runs trainyard to its end."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
    environment.update(env or {})
    return subprocess.run([TRAINYARD, "data", *args], capture_output=True, timeout=300, env=environment, check=False,
                          stdin=subprocess.DEVNULL, **kwargs)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-e2e.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(bytes.fromhex(content) if isinstance(content, str) else content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def ok(self, *args, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()

    def fails(self, done, code, *parts):
        """The command ended with `code`, printed no result and one line that has all parts."""
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(message.count("\n"), 1, message)
        for part in parts:
            self.assertIn(part, message)

    def records(self, *paths, flags=()):
        """All records of the files, as inspect shows them."""
        lines = self.ok("inspect", *paths, "--records", "0,1000000", "-o", "json", *flags).splitlines()
        return [base64.b64decode(row["base64"]) if "base64" in row else row["text"].encode()
                for row in map(json.loads, lines)]

    def hidden(self, folder=None):
        return [name for name in os.listdir(folder or self.folder) if name.startswith(".")]


class Inspect(Case):
    def test_reads_what_others_have_written(self):
        for number, (content, records) in enumerate(KNOWN):
            path = self.make("known-%d" % number, content)
            self.assertEqual(self.records(path), records)
            summary = json.loads(self.ok("inspect", path, "-o", "json"))
            self.assertEqual(summary["files"][0]["records"], len(records))
            self.assertEqual(summary["total"]["bytes"], os.path.getsize(path))

    def test_tells_every_format_in_a_table(self):
        self.make("in/a.rec", TWO_CHUNKS)
        self.make("in/b.rec", OLD_LAYOUT)
        self.make("in/c.csv", b"1,2,3\n4,5,6\n")
        self.make("in/d.gz", gzip.compress(idx([b"abcdef"] * 4, shape=(2, 3))))
        self.make("in/.hidden", b"half")
        os.mkdir(self.path("in/folder"))
        lines = [line.split() for line in self.ok("inspect", self.path("in")).splitlines()]
        names = [self.path("in/" + name) for name in ("a.rec", "b.rec", "c.csv", "d.gz")]
        self.assertEqual(lines[0], ["FILE", "FORMAT", "RECORDS", "SIZE", "CONTENT"])
        self.assertEqual([line[0] for line in lines[1:5]], names)
        self.assertEqual(lines[1][1:3] + lines[1][5:], ["recordio", "3", "2", "chunks,", "none"])
        self.assertEqual(lines[2][5:], ["1", "chunk,", "none,", "old", "layout"])
        self.assertEqual(lines[3][5:], ["3", "columns"])
        self.assertEqual(lines[4][5:], ["u8", "2x3,", "gzip"])
        self.assertEqual(lines[5][:5], ["total", "of", "4", "-", "10"])
        wide = self.ok("inspect", self.path("in"), "-o", "wide").splitlines()
        self.assertRegex(wide[0], r"BYTES +CHUNKS +LAYOUT +COMPRESSOR +SHAPE +COLUMNS$")
        self.assertRegex(wide[4], r" - +- +gzip +u8 2x3 +-$")
        self.assertEqual(self.ok("inspect", self.path("in"), "-o", "name").split(), names)
        rows = json.loads(self.ok("inspect", self.path("in"), "-o", "json"))["files"]
        self.assertEqual(rows[1], {"file": names[1], "format": "recordio", "bytes": 29, "records": 1, "chunks": 1,
                                   "layouts": ["old"], "compressors": ["none"]})
        self.assertEqual(rows[3]["shape"], [2, 3])
        self.assertIn("columns: 3\n", self.ok("inspect", self.path("in"), "-o", "yaml"))

    def test_shows_some_records(self):
        path = self.make("a.rec", chunk([b"text\n", bytes(range(5)), b"x" * 5000, b""]))
        lines = self.ok("inspect", path, "--records", "0,4").splitlines()
        self.assertRegex(lines[1], r'^0 +5 +"text\\n" +.*a\.rec: record 0 of the chunk at byte 0$')
        self.assertRegex(lines[2], r"^1 +5 +0001020304 ")
        self.assertRegex(lines[3], r'^2 +5000 +"x{60}"\.\.\. ')
        self.assertRegex(lines[4], r'^3 +0 +"" ')
        self.assertEqual(len(self.ok("inspect", path, "--records", "1").splitlines()), 2)
        self.assertEqual(len(self.ok("inspect", path, "--records", "2,100").splitlines()), 3)
        rows = [json.loads(line) for line in self.ok("inspect", path, "--records", "2", "-o", "json").splitlines()]
        self.assertEqual(rows[0]["text"], "x" * 5000)
        self.assertIn("- number: 0\n", self.ok("inspect", path, "--records", "0", "-o", "yaml"))
        csv = self.make("a.csv", b"name\nx\ny\n")
        self.assertRegex(self.ok("inspect", csv, csv, "--skip-header", "--records", "3"), r'3 +1 +"y" +.*: line 3\n')

    def test_goes_on_after_a_file_that_cannot_be_read(self):
        good = self.make("a.rec", PLAIN)
        bad = self.make("b.rec", PLAIN + "00")
        done = run("inspect", good, bad, self.path("none"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"recordio", done.stdout)
        self.assertIn(("%s: damaged at byte 52: " % bad).encode(), done.stderr)
        self.assertIn(b"cannot open", done.stderr)
        self.assertTrue(done.stderr.endswith(b"trainyard data inspect: 2 of 3 files cannot be read\n"), done.stderr)
        self.fails(run("inspect", bad), 1, bad, "damaged at byte 52")

    def test_refuses_bad_input(self):
        path = self.make("a.rec", PLAIN)
        self.fails(run("inspect"), 2, "PATHS")
        self.fails(run("inspect", self.path("none")), 1, "cannot open", "No such file or directory")
        self.fails(run("inspect", self.path("none-*")), 1, "no file matches")
        os.mkdir(self.path("empty"))
        self.fails(run("inspect", self.path("empty")), 1, "no file in the folder")
        for wrong in ("", "x", "-1", "1,", "1,0", "1,2,3", "1.5"):
            self.fails(run("inspect", path, "--records=" + (wrong or ",")), 2, "FIRST,COUNT")
        self.fails(run("inspect", path, "--records", "3"), 1, "there is no record 3: there are 3")
        self.fails(run("inspect", path, "--format", "tfrecord"), 2, "not one of auto, recordio, csv, idx")
        self.fails(run("inspect", path, "--delimiter", "ab"), 2, "not one character")
        self.fails(run("inspect", self.make("what", b"hello"), "-o", "json"), 1, "cannot tell what")


class Verify(Case):
    def lines(self, *args):
        """The damage that is told of; the command failed, with a summary."""
        done = run("verify", *args)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertIn(b"damaged", done.stderr)
        return done.stdout.decode().splitlines()

    def test_finds_nothing_wrong_with_what_is_right(self):
        paths = [self.make("known-%d" % i, content) for i, (content, _) in enumerate(KNOWN)]
        paths += [self.make("a.csv", b"1,2\n3,4\n"), self.make("b", idx([b"x"] * 3)), self.make("empty", b"")]
        self.assertRegex(self.ok("verify", *paths), r"^19 records in 9 files, \d+ B: no damage\n$")
        total = json.loads(self.ok("verify", *paths, "-o", "json"))["total"]
        self.assertEqual((total["files"], total["records"], total["damages"]), (9, 19, 0))

    def test_finds_every_cut(self):
        paths = []
        for name, content in (("plain", TWO_CHUNKS), ("snappy", SNAPPY), ("old", OLD_LAYOUT)):
            content = bytes.fromhex(content)
            for size in range(1, len(content)):
                if content[:size] != bytes.fromhex(TWO_CHUNKS)[:37]:  # which is whole
                    paths.append(self.make("%s-%03d" % (name, size), content[:size]))
        lines = self.lines(*paths, "--format", "recordio")
        self.assertEqual([line.split(": ")[0] for line in lines], paths)
        for line in lines:
            self.assertRegex(line, r": damaged at byte \d+: ")

    def test_finds_every_flipped_bit(self):
        for name, content, chunks in (("plain", TWO_CHUNKS, 2), ("snappy", SNAPPY, 1), ("gzip", None, 1)):
            content = bytes.fromhex(content) if content else self.gzip_chunk()
            paths = []
            for bit in range(8 * len(content)):
                bad = bytearray(content)
                bad[bit // 8] ^= 1 << bit % 8
                paths.append(self.make("%s/%04d" % (name, bit), bytes(bad)))
            done = run("verify", self.path(name), "--format", "recordio", "-o", "json")
            self.assertEqual(done.returncode, 1)
            files = json.loads(done.stdout)["files"]
            self.assertEqual([f["file"] for f in files], paths)
            for f in files:
                self.assertEqual(len(f["damages"]), 1, f)
                self.assertRegex(f["damages"][0]["message"], r"^damaged at byte \d+: ")
                self.assertEqual(f["chunks"], chunks - 1, f)

    def gzip_chunk(self):
        self.ok("convert", self.make("in", PLAIN), "--to", self.path("out"), "--compressor", "gzip")
        return self.read("out")

    def test_goes_on_behind_damage(self):
        chunks = [chunk([b"record %d" % i] * 100) for i in range(50)]
        for i in (3, 17, 49):
            chunks[i] = chunks[i][:-1] + b"!"
        starts = [sum(map(len, chunks[:i])) for i in range(51)]
        path = self.make("a.rec", b"".join(chunks))
        self.assertEqual(self.lines(path), [
            "%s: damaged at byte %d: the checksum of the chunk does not match (bytes %d to %d are lost)" %
            (path, starts[i], starts[i], starts[i + 1]) for i in (3, 17, 49)])
        done = run("verify", path)
        self.assertEqual(done.stderr, b"trainyard data verify: 1 of 1 file is damaged: 3 damaged places, and 4700 "
                                      b"records that are whole\n")

    def test_goes_on_after_a_file_that_cannot_be_read(self):
        good = self.make("a.rec", PLAIN)
        done = run("verify", self.path("none"), self.make("what", b"hello"), good)
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("cannot open", lines[0])
        self.assertIn("cannot tell what", lines[1])
        self.assertIn(b"2 of 3 files are damaged or cannot be read", done.stderr)
        self.fails(run("verify", self.path("none")), 1, "cannot open", "No such file")
        self.fails(run("verify"), 2, "PATHS")
        os.mkfifo(self.path("pipe"))
        self.fails(run("verify", self.path("pipe")), 1, "is not a file")

    def test_finds_what_is_wrong_with_csv_and_idx(self):
        csv = self.make("a.csv", b'x,y\n1,2\n3\n"4,5\n')
        lines = self.lines(csv)
        self.assertIn("%s: damaged at byte 8: line 3 has 1 columns, and the first record has 2" % csv, lines[0])
        self.assertIn("damaged at byte 10: a quote is opened in the record of line 4", lines[1])
        packed = bytearray(gzip.compress(idx([b"abcd"] * 10, shape=(4,))))
        packed[-6] ^= 1
        self.assertIn("the gzip data is damaged", self.lines(self.make("b.gz", bytes(packed)))[0])
        self.assertIn("the file should end at byte", self.lines(self.make("c", idx([b"abcd"] * 10)))[0])

    def test_shows_progress_on_a_terminal_only(self):
        path = self.make("a.csv", b"1,2,3,4\n" * (16 << 20))  # more than can be read in a tenth of a second
        controller, terminal = pty.openpty()
        done = subprocess.run([TRAINYARD, "data", "verify", path], stdout=subprocess.PIPE, stderr=terminal, timeout=300,
                              check=False)
        os.close(terminal)
        shown = os.read(controller, 1 << 16) if done.returncode == 0 else b""
        os.close(controller)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"16777216 records in 1 file, 128 MiB: no damage\n", done.stdout)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        self.assertIn(b"file 1 of 1, ", shown)


class Convert(Case):
    def test_brings_every_format_to_recordio(self):
        records = [b"1,2", b"", b"5,6"]
        inputs = [self.make("a.csv", b"1,2\n\n5,6\n"), self.make("b", chunk(records[:1]) + chunk(records[1:]))]
        for compressor in ("none", "snappy", "gzip"):
            for i, source in enumerate(inputs):
                out = self.path("%s-%d" % (compressor, i))
                self.assertRegex(self.ok("convert", source, "--to", out, "--compressor", compressor),
                                 r"^3 records written to %s: 1 file, \d+ B, \d+ ms\n$" % out)
                self.assertEqual(self.records(out), records)
                self.ok("verify", out)
                summary = json.loads(self.ok("inspect", out, "-o", "json"))["files"][0]
                self.assertEqual((summary["layouts"], summary["compressors"]), (["new"], [compressor]))
        self.assertEqual(self.hidden(), [])

    def test_writes_the_bytes_that_others_write(self):
        old = self.make("old", OLD_LAYOUT)
        self.ok("convert", old, "--to", self.path("new"), "--compressor", "none")
        self.assertEqual(self.read("new"), chunk([b"Hello"]))
        lines = self.make("a.csv", b"12345\n1234\n12\n")
        self.ok("convert", lines, "--to", self.path("two"), "--compressor", "none", "--max-chunk", "10")
        self.assertEqual(self.read("two"), bytes.fromhex(TWO_CHUNKS))
        hello = self.make("hello.csv", b"Hello\nWorld,\nRecordIO!\n")
        self.ok("convert", hello, "--to", self.path("hello"))
        self.assertEqual(self.read("hello"), bytes.fromhex(SNAPPY))
        self.ok("convert", self.make("b", BUFFERED_SNAPPY), "--to", self.path("plain"), "--compressor", "none")
        self.assertEqual(self.read("plain"), bytes.fromhex(PLAIN))

    def test_makes_images_and_labels_one_record(self):
        images = [bytes((i * j) % 256 for j in range(784)) for i in range(500)]
        labels = [bytes([i % 10]) for i in range(500)]
        image_file = self.make("images.gz", gzip.compress(idx(images, shape=(28, 28))))
        label_file = self.make("labels.gz", gzip.compress(idx(labels)))
        out = self.path("train")
        self.ok("convert", image_file, label_file, "--zip", "--as", "f32/255,i64", "--to", out, "--records-per-file", "200")
        self.assertEqual(sorted(os.listdir(out)), ["data-00000", "data-00001", "data-00002"])
        records = self.records(out)
        self.assertEqual(len(records), 500)
        for image, label, record in zip(images, labels, records):
            values = struct.unpack("<784fq", record)
            self.assertEqual(values[784], label[0])
            self.assertEqual(struct.pack("<784f", *values[:784]), struct.pack("<784f", *(x * (1 / 255) for x in image)))
        self.ok("convert", image_file, label_file, "--zip", "--to", self.path("raw"))
        self.assertEqual(self.records(self.path("raw")), [a + b for a, b in zip(images, labels)])
        self.assertEqual(os.stat(out).st_mode & 0o777, 0o777 & ~current_umask())

    def test_makes_numbers_of_columns(self):
        csv = self.make("iris.csv", b"a,b,c\n0.5,1.5,2\n-1,2e3,1\n")
        self.ok("convert", csv, "--skip-header", "--as", "f32x2,i64", "--to", self.path("out"))
        self.assertEqual([struct.unpack("<2fq", r) for r in self.records(self.path("out"))],
                         [(0.5, 1.5, 2), (-1.0, 2000.0, 1)])
        bad = self.make("bad.csv", b"1,2\n3,four\n")
        self.fails(run("convert", bad, "--as", "f32", "--to", self.path("no")), 1,
                   bad + ': line 2: column 2 is "four", which is no f32')
        tabs = self.make("tabs.csv", b'1\t"\n')
        self.ok("convert", tabs, "--delimiter", "tab", "--no-quotes", "--to", self.path("tabs"))
        self.assertEqual(self.records(self.path("tabs")), [b'1\t"'])

    def test_takes_large_files_through_all_formats(self):
        records = [os.urandom(600) + b"x" * (i % 1000) for i in range(100000)]
        start = self.make("start", b"".join(chunk(records[i:i + 1000]) for i in range(0, len(records), 1000)))
        last = start
        for number, flags in enumerate((["--compressor", "snappy"], ["--compressor", "gzip", "--records-per-file", "30000"],
                                        ["--compressor", "none", "--max-chunk", "1048576"])):
            out = self.path("out-%d" % number)
            self.ok("convert", last, "--to", out, *flags)
            self.assertRegex(self.ok("verify", out), r"^100000 records in \d files?, .*: no damage\n$")
            last = out
        self.ok("convert", last, "--to", self.path("back"), "--compressor", "none", "--max-chunk", "1048576")
        self.assertEqual(self.read("back"), self.read("out-2"))
        self.assertEqual(self.records(self.path("back"))[99990:], records[99990:])

    def test_keeps_what_is_there(self):
        source = self.make("a.csv", b"1\n2\n3\n")
        taken = self.make("taken", b"mine")
        self.fails(run("convert", source, "--to", taken), 1, "taken is there already")
        self.assertEqual(self.read("taken"), b"mine")
        self.ok("convert", source, "--to", taken, "--overwrite")
        self.assertEqual(self.records(taken), [b"1", b"2", b"3"])
        folder = self.path("folder/")
        self.ok("convert", source, "--to", folder, "--records-per-file", "1")
        self.fails(run("convert", source, "--to", folder), 1, "has files already, such as data-00000")
        self.ok("convert", folder, "--to", folder, "--overwrite")  # of itself
        self.assertEqual(os.listdir(folder), ["data-00000"])
        self.assertEqual(self.records(folder), [b"1", b"2", b"3"])
        self.make("folder/notes", b"mine")
        self.fails(run("convert", source, "--to", folder, "--overwrite"), 1, "has notes, which is not overwritten")
        self.fails(run("convert", source, "--to", taken, "--overwrite", "--records-per-file", "2"), 1, "is a file")

    def test_writes_into_the_present_folder(self):
        source = self.make("a.csv", b"1\n2\n")
        os.mkdir(self.path("here"))
        self.ok("convert", source, "--to", ".", "--records-per-file", "1", cwd=self.path("here"))
        self.assertEqual(sorted(os.listdir(self.path("here"))), ["data-00000", "data-00001"])
        self.ok("convert", source, "--to", "out", cwd=self.path("here"))
        self.assertEqual(self.records(self.path("here/out")), [b"1", b"2"])

    def test_leaves_nothing_when_it_fails(self):
        bad = self.make("bad", bytes.fromhex(TWO_CHUNKS)[:-1] + b"!")
        for to in ("file", "folder/"):
            self.fails(run("convert", bad, "--to", self.path(to)), 1, bad + ": damaged at byte 37")
        # A disk that is full.
        large = self.make("large", chunk([os.urandom(1 << 20) for _ in range(8)]))
        for to in ("file", "folder/"):
            done = run("convert", large, "--to", self.path(to), "--compressor", "none", "--max-chunk", "2000000",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20)))
            self.fails(done, 1, "cannot write", "File too large")
        self.assertEqual(sorted(os.listdir(self.folder)), ["bad", "large"])

    def test_leaves_nothing_when_it_is_interrupted(self):
        large = self.make("large", chunk([b"x" * 1000] * 10000) * 20)  # it is not packed before the signal
        for name in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([TRAINYARD, "data", "convert", large, "--to", self.path("out"), "--compressor", "gzip"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not self.hidden() and process.poll() is None:
                pass
            process.send_signal(name)
            _, message = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 1)
            self.assertEqual(message, b"trainyard data convert: it was interrupted: nothing is written\n")
            self.assertEqual(os.listdir(self.folder), ["large"])

    def test_refuses_bad_input(self):
        source = self.make("a.rec", PLAIN)
        out = self.path("out")
        self.fails(run("convert", "--to", out), 2, "PATHS")
        self.fails(run("convert", source), 2, "--to is missing")
        self.fails(run("convert", self.path("none"), "--to", out), 1, "cannot open", "No such file")
        self.fails(run("convert", source, "--to", self.path("none/out")), 1, "No such file or directory")
        self.fails(run("convert", source, "--to", out, "--as", "f33"), 2, "--as: 'f33' is no field")
        self.fails(run("convert", source, "--to", out, "--as", "f32"), 1, "can only be raw")
        self.fails(run("convert", source, "--to", out, "--compressor", "lz4"), 2, "not one of none, snappy, gzip")
        self.fails(run("convert", source, "--to", out, "--records-per-file", "0"), 2, "must be above 0")
        self.fails(run("convert", source, "--to", out, "--max-chunk", "0"), 2, "must be above 0")
        self.fails(run("convert", source, "--to", out, "--max-chunk", "999999999"), 2, "at most 268435456")
        self.fails(run("convert", source, "--to", out, "--max-chunk", "9"), 1, "a record of 9 bytes is too large")
        self.fails(run("convert", source, self.make("b.csv", b"1\n"), "--to", out), 1, "b.csv is csv, but")
        one = self.make("one", idx([b"a"]))
        two = self.make("two", idx([b"a", b"b"]))
        self.fails(run("convert", one, two, "--zip", "--to", out), 1, one, "has 1 records", two, "has 2")
        self.assertFalse(os.path.exists(out))

    def test_takes_flags_from_the_environment(self):
        source = self.make("a.rec", PLAIN)
        self.ok("convert", source, env={"TRAINYARD_DATA_CONVERT_TO": self.path("out"),
                                        "TRAINYARD_DATA_CONVERT_COMPRESSOR": "none"})
        self.assertEqual(self.read("out"), bytes.fromhex(PLAIN))


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    TRAINYARD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
