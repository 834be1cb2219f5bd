"""Elastic jobs whose model reads its data by itself: from SQLite, from folders, from whatever it likes; and readers that do
what they must not.

usage: elastic_readers_test.py TRAINYARD [unittest arguments]
"""

import importlib.util
import os
import re
import signal
import sqlite3
import subprocess

import elastic_jobs
from cluster import environment
from elastic_jobs import COUNTING_MODEL, ElasticCase, read_tensor
from graph_jobs import longer_if_over

EXAMPLE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "reader")
RECORDS = 128

# A record is its own number. Each falls by 1 / minibatch whenever it is used, so that what was learnt is a count of uses;
# and what is predicted of a record is its number.
MODEL = """
import glob, os, sqlite3, sys
import numpy as np
import trainyard as ty

RECORDS = 128
IN_A_WORKER = "TRAINYARD_MASTER" in os.environ

class Counts:
    def __init__(self):
        self.parameters = {"w": np.zeros(RECORDS, np.float32)}
    def outputs(self, features):
        return features.argmax(axis=1).astype(np.float32).reshape(-1, 1)
    def gradients(self, features, labels):
        return 0.0, {"w": features.mean(axis=0)}

def model(): return Counts()
def optimizer(): return ty.Sgd(rate=1.0)
def dataset_fn(records, mode):
    return np.eye(RECORDS, dtype=np.float32)[[number for number in records]], None
def eval_metrics_fn(outputs, labels): return {"number": outputs.mean()}
def write_text(path, outputs):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.writelines("%d\\n" % number for number in outputs.reshape(-1))

class Rows:  # SQLite's connections are of one thread, and say so
    def __init__(self, source):
        path, _, self.table = source.partition("#")
        self.database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    def __len__(self):
        return self.database.execute("SELECT count(*) FROM " + self.table).fetchone()[0]
    def read(self, begin, end):
        for number, in self.database.execute("SELECT number FROM %s ORDER BY number LIMIT ? OFFSET ?" % self.table,
                                             (end - begin, begin)):
            yield number

class Files:
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.txt")))
    def __len__(self): return len(self.paths)
    def __getitem__(self, number):
        with open(self.paths[number]) as file:
            return int(file.read())

class Lines:
    def __init__(self, source, job):
        with open(source) as file:
            self.numbers = [int(line) * int(job.params.get("by", 1)) for line in file]
    def __len__(self): return len(self.numbers)
    def read(self, begin, end): return self.numbers[begin:end]
    def read_at(self, numbers): return [self.numbers[number] for number in numbers]

class Numbers:
    def __init__(self, source): self.source = source
    def __len__(self): return RECORDS
    def read(self, begin, end): return range(begin, end)

def make(**members): return type("Made", (Numbers,), members)
Short = make(read=lambda self, begin, end: range(begin, end - 1))
Long = make(read=lambda self, begin, end: iter(int, 1))
Raising = make(read=lambda self, begin, end: 1 // 0)
Leaving = make(read=lambda self, begin, end: sys.exit(0))
Negative = make(__len__=lambda self: -5)
Absurd = make(__len__=lambda self: 2**60)
Empty = make(__len__=lambda self: 0)
Other = make(__len__=lambda self: RECORDS - IN_A_WORKER)

def unseen(source):
    if not IN_A_WORKER:
        raise OSError("%s is not here" % source)
    return Numbers(source)
def nothing(source): return None
def leaving_early(source): sys.exit(0)
def talking(source):
    print("a word of its own")
    raise LookupError(source)
"""


class ReadersCase(ElasticCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = os.path.join(cls.folder, "model.py")
        with open(cls.model, "w") as file:
            file.write(MODEL)
        cls.rows = os.path.join(cls.folder, "numbers.db")
        database = sqlite3.connect(cls.rows)
        database.execute("CREATE TABLE numbers (number INTEGER)")
        database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(RECORDS)])
        database.commit()
        database.close()
        cls.files = os.path.join(cls.folder, "files")
        os.mkdir(cls.files)
        for number in range(RECORDS):
            with open(os.path.join(cls.files, "%04d.txt" % number), "w") as file:
                file.write(str(number))
        cls.lines = os.path.join(cls.folder, "lines")
        with open(cls.lines, "w") as file:
            file.writelines("%d\n" % number for number in range(RECORDS))

    def counting(self, name, epochs, reader, source, *flags):
        return ["--model", self.model, "--data-reader", reader, "--training-data", source, "--name", name, "--minibatch", 4,
                "--minibatches-per-task", 4, "--staleness", 2, "--epochs", epochs, "--output", self.path("out-" + name), *flags]

    def assert_each_record_used(self, name, epochs):
        weights = read_tensor(self.path("out-" + name, "w.tensor")).reshape(-1)
        self.assertEqual(weights.tolist(), [-epochs / 4] * RECORDS)

    def kill_a_worker(self, name):
        self.await_progress(name, lambda p: p["totalRecords"] > 500 and p["workers"] == 2, "training to begin")
        os.kill(self.pid(name, "trainyard.elastic", name + "-worker-0"), signal.SIGKILL)
        self.await_progress(name, lambda p: p["restarts"] == 1 and p["workers"] == 2, "a worker to be back")

    def assert_complete(self, job, name, epochs):
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertIn("trained %d records" % (epochs * RECORDS), out)
        self.assertIn("1 restarts", out)
        self.assert_each_record_used(name, epochs)


class Training(ReadersCase):
    @longer_if_over
    def test_uses_each_row_of_sqlite_once_in_each_epoch_whoever_is_killed(self):
        name, epochs = "rows%d" % self.times, 400 * self.times
        job = self.start_job("train", *self.counting(name, epochs, "Rows", self.rows + "#numbers"), "--checkpoint-steps", 50)
        self.kill_a_worker(name)
        os.kill(self.pid(name, "master", name + "-master-0"), signal.SIGKILL)
        self.assert_complete(job, name, epochs)

    @longer_if_over
    def test_uses_each_file_of_a_folder_once_in_each_epoch_in_any_order(self):
        name, epochs = "files%d" % self.times, 400 * self.times
        job = self.start_job("train", *self.counting(name, epochs, "Files", self.files), "--shuffle", "records")
        self.kill_a_worker(name)
        self.assert_complete(job, name, epochs)

    def test_asks_for_scattered_records_at_once(self):
        self.complete("train", *self.counting("lines", 3, "Lines", self.lines), "--shuffle", "records")
        self.assert_each_record_used("lines", 3)

    def test_learns_with_pservers_too(self):
        self.complete("train", *self.counting("pservers", 5, "Rows", self.rows + "#numbers"), "--pservers", 2)
        self.assert_each_record_used("pservers", 5)

    def test_takes_names_that_are_relative_to_where_the_command_is_given(self):
        done = subprocess.run(self.command("train", *self.counting("relative", 2, "Rows", "numbers.db#numbers")),
                              capture_output=True, text=True, env=environment(), timeout=300, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_each_record_used("relative", 2)

    def test_is_told_how_many_records_there_are_where_only_workers_see_them(self):
        flags = self.counting("unseen", 2, "unseen", "far-away")
        done = self.run_job("train", *flags)
        self.assertEqual(done.returncode, 1)
        self.assertIn("far-away: unseen() raised OSError: far-away is not here (model.py, line", done.stderr)
        self.complete("train", *flags, "--training-records", RECORDS)
        self.assert_each_record_used("unseen", 2)
        done = self.run_job("train", *self.counting("unseen-other", 2, "unseen", "far-away", "--training-records", 100))
        self.assertEqual(done.returncode, 1)
        self.assertIn("far-away: the job is for 100 records, and the reader has 128 here", done.stderr)


class Looking(ReadersCase):
    def test_evaluates_and_predicts_every_record_through_its_reader(self):
        source = self.rows + "#numbers"
        done = self.complete("train", *self.counting("trained", 1, "Rows", source), "--validation-data", source,
                             "--checkpoint-dir", self.path("ckpt"))
        self.assertIn("number %.4f" % ((RECORDS - 1) / 2), done.stdout)
        done = self.complete("evaluate", "--model", self.model, "--init-from", self.path("ckpt"), "--data-reader", "Lines",
                             "--validation-data", self.lines, "--name", "evaluated", "--minibatch", 5)
        self.assertIn("evaluated %d records  number %.4f" % (RECORDS, (RECORDS - 1) / 2), done.stdout)
        self.complete("predict", "--model", self.model, "--init-from", self.path("ckpt"), "--data-reader", "Files",
                      "--prediction-data", self.files, "--name", "predicted", "--output", self.path("predicted"),
                      "--writer", "write_text", "--minibatch", 10, "--minibatches-per-task", 2)
        numbers = []
        for name in sorted(os.listdir(self.path("predicted"))):
            with open(self.path("predicted", name)) as file:
                numbers += [int(line) for line in file]
        self.assertEqual(numbers, list(range(RECORDS)))

    def test_puts_records_of_two_sources_together_and_gives_readers_the_job(self):
        pairs = self.write("pairs.py", MODEL + """
def dataset_fn(records, mode):
    assert all(double == 2 * single for single, double in records), records
    return np.eye(RECORDS, dtype=np.float32)[[single for single, _ in records]], None
def either(source, job):
    return Rows(source) if "#" in source else Lines(source, job)
""")
        flags = self.counting("pairs", 2, "either", self.rows + "#numbers", "--training-data", self.lines, "--param", "by=2")
        flags[1] = pairs
        self.complete("train", *flags)
        self.assert_each_record_used("pairs", 2)


class BadReaders(ReadersCase):
    def test_are_refused_in_one_line_before_anything_is_made(self):
        for reader, words in (("nowhere", "has no function nowhere, which --data-reader names"),
                              ("nothing", "somewhere: nothing() gives a NoneType, which has no __len__"),
                              ("Negative", "somewhere: len() raised ValueError: __len__() should return >= 0"),
                              ("Absurd", "somewhere: its reader says that it has %d records" % 2**60),
                              ("Empty", "somewhere: its reader says that it has 0 records"),
                              ("leaving_early", "somewhere: leaving_early() raised SystemExit: 0 (model.py, line"),
                              ("talking", "somewhere: talking() raised LookupError: somewhere (model.py, line"),
                              ("Rows", "somewhere: Rows() raised OperationalError: unable to open database file (model.py, line")):
            with self.subTest(reader=reader):
                done = self.run_job("train", *self.counting("refused", 1, reader, "somewhere"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        few = self.write("few", "1\n2\n3\n")
        done = self.run_job("train", *self.counting("refused", 1, "Lines", self.lines, "--training-data", few))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("%s has 3 records, and %s has 128: they go together by number" % (few, self.lines), done.stderr)
        self.assertEqual(self.cluster.get("pods")["items"], [])

    def test_end_the_job_with_the_source_and_the_range(self):
        for reader, words in (("Short", r"somewhere: read\((\d+), (\d+)\) gave 3 records, and not 4"),
                              ("Long", r"somewhere: read\((\d+), (\d+)\) gave more than 4 records, and not 4"),
                              ("Raising", r"somewhere: read\((\d+), (\d+)\) raised ZeroDivisionError: .* \(model.py, line \d+\)"),
                              ("Leaving", r"somewhere: read\((\d+), (\d+)\) raised SystemExit: 0"),
                              ("Other", r"somewhere: the job is for 128 records, and the reader has 127 here")):
            with self.subTest(reader=reader):
                name = "bad-" + reader.lower()
                done = self.run_job("train", *self.counting(name, 1, reader, "somewhere"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"job %s has failed: records \[\d+, \d+\) of epoch 1 failed 3 times, the last time on "
                                              r"worker \d: %s" % (name, words))

    def test_are_not_for_nets_nor_for_record_files(self):
        net = self.write("counting.py", COUNTING_MODEL)
        good = ["--model", self.model, "--training-data", self.lines, "--data-reader", "Lines"]
        for flags, code, words in (
                ([*good, "--data-format", "csv"], 2, "--data-format and --skip-header are for record files"),
                ([*good, "--training-records", -1], 2, "--training-records must be from 1 to"),
                (good[:4] + ["--training-records", 5], 2, "--training-records is for --data-reader"),
                (["--model", net, *good[2:]], 1, "has a net, which reads record files by itself")):
            with self.subTest(flags=flags):
                done = self.run_job("train", *flags)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        done = self.run_job("predict", "--model", self.model, "--prediction-data", self.lines, "--data-reader", "Lines",
                            "--init-from", self.folder, "--output", self.path("none"), "--writer", "nowhere")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("has no function nowhere, which --writer names", done.stderr)


class Example(ElasticCase):
    def test_learns_from_rows_and_from_pictures(self):
        spec = importlib.util.spec_from_file_location("generate", os.path.join(EXAMPLE, "generate.py"))
        generate = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generate)
        shapes = self.path("shapes")
        generate.main(shapes)
        for reader, train, test in (("rows", shapes + "/shapes.db#train", shapes + "/shapes.db#test"),
                                    ("pictures", shapes + "/train", shapes + "/test")):
            with self.subTest(reader=reader):
                done = self.complete("train", "--model", os.path.join(EXAMPLE, "model.py"), "--data-reader", reader,
                                     "--training-data", train, "--validation-data", test, "--epochs", 4, "--minibatch", 32,
                                     "--staleness", 1, "--shuffle", "records", "--name", reader)
                self.assertGreater(float(re.search(r"accuracy ([0-9.]+)", done.stdout).group(1)), 0.95)


if __name__ == "__main__":
    elastic_jobs.main()
