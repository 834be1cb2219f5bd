"""Readers of a model's own: what they may be, and what is said of those that do what they must not."""

import dataclasses
import io
import itertools
import os
import types
import unittest
from contextlib import redirect_stderr

from trainyard.elastic.job import Job
from trainyard.elastic.readers import MOST_RECORDS, Reading, ReaderError, SourceReader, count_records

FILE = "/models/model.py"


class Letters:
    """Of what the source is: each letter is a record. It knows how it was asked."""

    def __init__(self, source):
        self.letters = source
        self.asked = []

    def __len__(self):
        return len(self.letters)

    def read(self, begin, end):
        self.asked.append((begin, end))
        return iter(self.letters[begin:end])


class LettersAnywhere(Letters):
    def read_at(self, numbers):
        self.asked.append(numbers)
        return (self.letters[number] for number in numbers)


def model(reader):
    module = types.ModuleType("model")
    module.__file__ = FILE
    module.letters = reader
    return module


def job(training=(), evaluation=(), prediction=(), **told):
    records = {"trainingRecords": 0, "validationRecords": 0, "predictionRecords": 0, "folder": "", **told}
    return Job(name="job", kind="train", minibatch=2, epochs=1, seed=1, params={"step": "2"}, training_data=list(training),
               validation_data=list(evaluation), prediction_data=list(prediction), output="", writer="",
               data_reader="letters", all=records)


def open_source(reader, source="abcdef"):
    return SourceReader(model(reader), job(), source)


class Case(unittest.TestCase):
    def setUp(self):
        self.talk = io.StringIO()  # tracebacks are for the worker's log
        self.enterContext(redirect_stderr(self.talk))

    def assert_refused(self, words, ask):
        with self.assertRaises(ReaderError) as raised:
            ask()
        self.assertIn(words, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))


class Source(Case):
    def test_asks_for_a_range_at_once(self):
        reader = open_source(Letters)
        self.assertEqual(reader.count, 6)
        self.assertEqual(reader.read([2, 3, 4]), ["c", "d", "e"])
        self.assertEqual(reader._reader.asked, [(2, 5)])

    def test_asks_for_scattered_records_as_the_reader_can(self):
        anywhere = open_source(LettersAnywhere)
        self.assertEqual(anywhere.read([5, 0, 3]), ["f", "a", "d"])
        self.assertEqual(anywhere._reader.asked, [[5, 0, 3]])
        one_by_one = open_source(Letters)
        self.assertEqual(one_by_one.read([5, 0, 3]), ["f", "a", "d"])
        self.assertEqual(one_by_one._reader.asked, [(5, 6), (0, 1), (3, 4)])

    def test_takes_whatever_has_a_length_and_items(self):
        reader = open_source(list)
        self.assertEqual(reader.read([1, 2]), ["b", "c"])
        self.assertEqual(reader.read([4, 0]), ["e", "a"])

    def test_gives_records_as_they_are(self):
        thing = object()
        self.assertIs(open_source(lambda source: [thing]).read([0])[0], thing)
        self.assertEqual(open_source(lambda source: [None, b""]).read([0, 1]), [None, b""])

    def test_gives_the_function_the_job_if_it_wants_it(self):
        reader = open_source(lambda source, job: source[::int(job.params["step"])])
        self.assertEqual(reader.read([0, 1, 2]), ["a", "c", "e"])


class BadReaders(Case):
    def test_are_refused_when_they_are_made(self):
        class Sized:
            def __len__(self):
                return 3

        for made, words in ((None, "abcdef: letters() gives a NoneType, which has no __len__: a reader has a length"),
                            (Sized(), "abcdef: letters() gives a Sized, which has no read and no __getitem__")):
            with self.subTest(words=words):
                self.assert_refused(words, lambda made=made: open_source(lambda source: made))

    def test_are_refused_with_an_absurd_length(self):
        for length, words in ((-1, "len() raised ValueError: __len__() should return >= 0"),
                              (0, "says that it has 0 records"),
                              (1.5, "len() raised TypeError"),
                              (MOST_RECORDS + 1, "says that it has 9007199254740993 records"),
                              (2**70, "len() raised OverflowError")):
            class Long(Letters):
                def __len__(self, length=length):
                    return length
            with self.subTest(length=length):
                self.assert_refused("abcdef: ", lambda: open_source(Long))
                self.assert_refused(words, lambda: open_source(Long))

    def test_are_told_by_what_they_give(self):
        for give, words in ((lambda: ["a"], "abcdef: read(1, 3) gave 1 records, and not 2"),
                            (lambda: [], "abcdef: read(1, 3) gave 0 records, and not 2"),
                            (lambda: "abc", "abcdef: read(1, 3) gave one str, and not an iterable of records"),
                            (lambda: b"ab", "abcdef: read(1, 3) gave one bytes"),
                            (lambda: None, "abcdef: read(1, 3) gave None"),
                            (lambda: 7, "abcdef: read(1, 3) raised TypeError: 'int' object is not iterable"),
                            (lambda: itertools.count(), "abcdef: read(1, 3) gave more than 2 records, and not 2")):
            class Odd(Letters):
                def read(self, begin, end, give=give):
                    return give()
            with self.subTest(words=words):
                self.assert_refused(words, lambda: open_source(Odd).read([1, 2]))

    def test_are_told_by_what_they_raise(self):
        def fail(error):
            raise error

        def halfway(error):
            yield "b"
            raise error

        for error, words in ((OSError("no\nsuch disk"), "raised OSError: no such disk"), (SystemExit(0), "raised SystemExit: 0"),
                             (KeyError(), "raised KeyError"), (KeyboardInterrupt(), "raised KeyboardInterrupt")):
            for raising in (fail, halfway):
                class Broken(Letters):
                    def read(self, begin, end, raising=raising, error=error):
                        return raising(error)
                with self.subTest(error=error, raising=raising.__name__):
                    self.assert_refused("abcdef: read(1, 3) " + words, lambda: open_source(Broken).read([1, 2]))
        self.assertIn("Traceback", self.talk.getvalue())

    def test_are_told_with_the_line_of_the_model(self):
        namespace = {}
        exec(compile("class Model:\n  def __len__(self): return 3\n  def __getitem__(self, number):\n    return [][number]\n",
                     FILE, "exec"), namespace)
        self.assert_refused("abcdef: record 1 raised IndexError: list index out of range (model.py, line 4)",
                            lambda: open_source(lambda source: namespace["Model"]()).read([1, 2]))

    def test_are_told_when_they_are_asked_for_scattered_records(self):
        class Short(LettersAnywhere):
            def read_at(self, numbers):
                return ["a"]
        self.assert_refused("abcdef: read_at() of records 5, 0, 3, … (4) gave 1 records, and not 4",
                            lambda: open_source(Short).read([5, 0, 3, 1]))


class Counting(Case):
    def test_is_done_for_each_kind_that_has_sources(self):
        self.assertEqual(count_records(model(Letters), job(["abc", "xyz"], ["ab"])), {"training": 3, "evaluation": 2})

    def test_is_left_out_where_the_job_has_the_number(self):
        def never(source):
            raise OSError("only workers see it")
        self.assertEqual(count_records(model(never), job(["abc"], trainingRecords=3)), {})

    def test_is_refused_where_records_do_not_go_together(self):
        self.assert_refused("wxyz has 4 records, and abc has 3: they go together by number",
                            lambda: count_records(model(Letters), job(["abc", "wxyz"])))


class Native:
    """Asks for what it was made with, and has the answers."""

    def __init__(self, *asked):
        self.asked = list(asked)
        self.answers = {}

    def next_read(self):
        return self.asked.pop(0) if self.asked else None

    def answer_read(self, ticket, error):
        self.answers[ticket] = error

    def ticket(self, batch):
        return batch


class Thread(Case):
    def run_reading(self, native, reader, asked_job):
        reading = Reading(native, model(reader), asked_job)
        reading.start()
        reading._thread.join()
        return reading

    def test_reads_what_it_is_asked_for_and_forgets_what_it_is_told_to(self):
        native = Native((1, "training", [0, 1], []), (2, "training", [2], []), (3, "evaluation", [0], [1]))
        reading = self.run_reading(native, Letters, job(["abc"], ["x"], trainingRecords=3, validationRecords=1))
        self.assertEqual(native.answers, {1: "", 2: "", 3: ""})
        self.assertEqual(reading.take(2), ["c"])
        self.assertEqual(reading.take(3), ["x"])
        self.assertRaises(KeyError, reading.take, 1)

    def test_puts_records_of_several_sources_together(self):
        native = Native((1, "prediction", [0, 2], []))
        reading = self.run_reading(native, Letters, job(prediction=["abc", "xyz"], predictionRecords=3))
        self.assertEqual(reading.take(1), [("a", "x"), ("c", "z")])

    def test_makes_its_readers_by_itself_and_once(self):
        import threading
        made = []

        def letters(source):
            made.append(threading.current_thread().name)
            return source
        self.run_reading(Native((1, "training", [0], []), (2, "training", [1], [])), letters, job(["abc"], trainingRecords=3))
        self.assertEqual(made, ["reading"])

    def test_answers_with_what_is_wrong_and_goes_on_with_another_reader(self):
        made = []

        def letters(source):
            made.append(source)
            if len(made) == 1:
                class Broken(Letters):
                    def read(self, begin, end):
                        raise SystemExit(3)
                return Broken(source)
            return source
        native = Native((1, "training", [0], []), (2, "training", [0], []))
        reading = self.run_reading(native, letters, job(["abc"], trainingRecords=3))
        self.assertEqual(native.answers, {1: "abc: read(0, 1) raised SystemExit: 3", 2: ""})
        self.assertEqual(reading.take(2), ["a"])

    def test_answers_whatever_is_raised(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        for error, words in ((Mute(), "abc: letters() raised Mute"), (OSError("\udcff"), "abc: letters() raised OSError: ?"),
                             (GeneratorExit(), "abc: letters() raised GeneratorExit")):
            def letters(source, error=error):
                raise error
            with self.subTest(error=type(error)):
                native = Native((1, "training", [0], []))
                self.run_reading(native, letters, job(["abc"], trainingRecords=3))
                self.assertTrue(native.answers[1].startswith(words), native.answers)

    def test_refuses_a_source_that_is_another_one_here(self):
        native = Native((1, "training", [0], []))
        self.run_reading(native, Letters, job(["abc"], trainingRecords=4))
        self.assertIn("abc: the job is for 4 records, and the reader has 3 here", native.answers[1])

    def test_reads_where_the_job_was_submitted_if_that_is_here(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for folder, expected in (("/", "/"), ("/no/such/folder", "/")):
            asked = job(["abc"], trainingRecords=3)
            asked = dataclasses.replace(asked, all={**asked.all, "folder": folder})
            self.run_reading(Native(), Letters, asked)
            self.assertEqual(os.getcwd(), expected)


if __name__ == "__main__":
    unittest.main()
