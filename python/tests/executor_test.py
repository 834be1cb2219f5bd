"""Executors: feeding, fetching, keeping, saving; and that nothing leaks."""

import gc
import os
import pathlib
import pickle
import sys
import tempfile
import threading
import unittest

import numpy as np

import trainyard as ty
from nets import classifier, clusters, line, line_batch


def identity(dtype):
    """A program with one variable, which can be fed and fetched."""
    net = ty.Net("identity")
    net.data("x", [3], dtype=dtype)
    return net.finish()


class Arrays(unittest.TestCase):
    def back(self, dtype, array):
        program = identity(dtype)
        value, = ty.Executor().run(program, feed={"x": array}, fetch=["x"])
        return value

    def test_become_one_of_three_types_by_their_kind(self):
        for dtype, given, expected in (
                ("f32", np.float32, np.float32), ("f32", np.float64, np.float32), ("f32", np.float16, np.float32),
                ("f32", ">f8", np.float32), ("i64", np.int64, np.int64), ("i64", np.int32, np.int64),
                ("i64", np.uint8, np.int64), ("i64", ">i4", np.int64), ("i64", np.uint32, np.int64),
                ("bool", np.bool_, np.bool_)):
            with self.subTest(given=given):
                array = np.array([[0, 1, 1], [1, 0, 1]]).astype(given)
                value = self.back(dtype, array)
                self.assertEqual(value.dtype, expected)
                np.testing.assert_array_equal(value, array)

    def test_may_have_types_that_are_equal_and_not_the_same(self):
        ones = np.ones((2, 3))
        for dtype, array in (("f32", pickle.loads(pickle.dumps(ones.astype(np.float32)))),
                             ("f32", ones.astype(np.dtype(np.float32, metadata={"unit": "m"}))),
                             ("i64", ones.astype(np.longlong)), ("i64", ones.astype(np.ulonglong).view(np.longlong)),
                             ("bool", pickle.loads(pickle.dumps(ones.astype(bool))))):
            np.testing.assert_array_equal(self.back(dtype, array), array)

    def test_of_one_kind_are_never_made_another(self):
        for dtype, given in (("f32", np.int64), ("f32", np.bool_), ("i64", np.float32), ("i64", np.bool_),
                             ("bool", np.int64)):
            with self.subTest(dtype=dtype, given=given):
                with self.assertRaisesRegex(ty.Error, f"^variable x is {dtype}.* and cannot be fed "):
                    self.back(dtype, np.zeros((2, 3), given))

    def test_of_other_kinds_are_refused_by_name(self):
        for given in (np.complex64, np.uint64, "U3", object, "M8[s]", np.longdouble):
            with self.subTest(given=given):
                with self.assertRaisesRegex(TypeError, r"^run: feed\['x'\] is of .*: convert it first$"):
                    self.back("f32", np.zeros((2, 3), given))

    def test_may_have_any_strides(self):
        whole = np.arange(48, dtype=np.float32).reshape(8, 6)
        for array in (whole[::2, ::2], whole[::-1, 3:], whole.T[:3].T, np.asfortranarray(whole[:, :3]),
                      np.broadcast_to(whole[0, :3], (5, 3))):
            np.testing.assert_array_equal(self.back("f32", array), array)

    def test_may_be_lists_and_read_only_and_empty(self):
        np.testing.assert_array_equal(self.back("f32", [[1.0, 2.0, 3.0]]), [[1, 2, 3]])
        frozen = np.ones((2, 3), np.float32)
        frozen.setflags(write=False)
        np.testing.assert_array_equal(self.back("f32", frozen), frozen)
        self.assertEqual(self.back("f32", np.zeros((0, 3), np.float32)).shape, (0, 3))

    def test_of_a_wrong_shape_are_refused(self):
        with self.assertRaisesRegex(ty.Error, r"^variable x is f32\[-1, 3\] and cannot be fed f32\[2, 4\]$"):
            self.back("f32", np.zeros((2, 4)))
        with self.assertRaisesRegex(ty.Error, "9 dims, and 8 is the most"):
            self.back("f32", np.zeros([1] * 9))

    def test_that_come_out_are_the_callers_own(self):
        program = identity("f32")
        exe = ty.Executor()
        given = np.ones((2, 3), np.float32)
        first, = exe.run(program, feed={"x": given}, fetch=["x"])
        first[:] = 5
        exe.run(program, feed={"x": given * 2})
        self.assertTrue((first == 5).all() and (given == 1).all())
        self.assertTrue(first.flags.writeable and first.flags.c_contiguous)


class Running(unittest.TestCase):
    def test_needs_to_be_started(self):
        program, _ = line()
        with self.assertRaisesRegex(ty.Error, "input w has no value yet: feed it, or run the startup program first"):
            ty.Executor().run(program, feed=line_batch())

    def test_needs_what_is_fed_in_every_run(self):
        program, loss = line()
        exe = ty.Executor()
        exe.start(program)
        exe.run(program, feed=line_batch())
        with self.assertRaisesRegex(ty.Error, "input x has no value yet: feed it"):
            exe.run(program)
        with self.assertRaisesRegex(ty.Error, "input y has no value yet: feed it"):
            exe.run(program, feed={"x": line_batch()["x"]})
        exe.run(program, feed=line_batch(), fetch=[loss])

    def test_takes_batches_of_any_size(self):
        program, loss = line()
        exe = ty.Executor()
        exe.start(program)
        for count in (1, 100, 7, 100, 1):
            value, x = exe.run(program, feed=line_batch(count), fetch=[loss, "x"])
            self.assertEqual((value.shape, x.shape), ((1,), (count, 1)))

    def test_a_parameter_that_is_fed_stays_as_it_was_fed(self):
        program, _ = line()
        exe = ty.Executor()
        exe.start(program)
        given = np.array([[7.0]], np.float32)
        exe.run(program.clone_for_test(), feed={**line_batch(), "w": given})
        self.assertEqual(exe.get("w").item(), 7)
        exe.run(program, feed=line_batch())
        self.assertEqual(given.item(), 7)
        before = exe.get("w")
        with self.assertRaises(ty.Error):
            exe.run(program, feed={**line_batch(), "w": np.zeros((2, 2))})
        self.assertEqual(exe.get("w"), before)

    def test_refuses_names_and_kinds_that_it_does_not_know(self):
        program, loss = line()
        exe = ty.Executor()
        exe.start(program)
        for feed, fetch, message in (({"z": [[1.0]]}, [], "the program has no variable z to feed"),
                                     ({}, ["z"], "the program has no variable z to fetch")):
            with self.assertRaisesRegex(ty.Error, f"^{message}$"):
                exe.run(program, feed={**line_batch(), **feed}, fetch=fetch)
        for call, message in (
                (lambda: exe.run(program, feed=[1]), "run: feed must be a dict, and is a list"),
                (lambda: exe.run(program, fetch="w"), "run: fetch must be a list, and is a str"),
                (lambda: exe.run(program, fetch=loss), "run: fetch must be a list, and is a Variable"),
                (lambda: exe.run("program"), "run: program must be a Program, and is a str"),
                (lambda: exe.start(None), "start: program must be a Program, and is a NoneType"),
                (lambda: exe.get(3), "get: variable: a variable is named by a str or a Variable, and not by a int"),
                (lambda: exe.save(3), "save: folder must be a str or a path, and is a int")):
            with self.assertRaises(TypeError) as raised:
                call()
            self.assertEqual(str(raised.exception), message)

    def test_names_the_operator_that_made_an_infinity(self):
        net = ty.Net("net")
        net.log(net.data("x", [1]))
        program = net.finish()
        ty.Executor().run(program, feed={"x": [[0.0]]})
        with self.assertRaisesRegex(ty.Error, r"operator 0 \(log\): element 0 of log_0 is -inf"):
            ty.Executor(check_finite=True).run(program, feed={"x": [[0.0]]})

    def test_needs_a_thread(self):
        with self.assertRaisesRegex(ty.Error, "threads must be at least 1 and is 0"):
            ty.Executor(threads=0)

    def test_many_threads_compute_what_one_computes(self):
        program, loss, _ = classifier(ty.Sgd(rate=0.1), width=64, hidden=256)
        ends = []
        for threads in (1, 4):
            exe = ty.Executor(threads=threads)
            exe.start(program)
            for i in range(5):
                value, = exe.run(program, feed=clusters(64, width=64, seed=i), fetch=[loss])
            ends.append(value)
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-4)


class Variables(unittest.TestCase):
    def test_of_two_executors_are_their_own(self):
        program, _ = line()
        first, second = ty.Executor(), ty.Executor()
        first.start(program)
        second.start(program)
        begin = second.get("w")
        for i in range(10):
            first.run(program, feed=line_batch(seed=i))
        self.assertEqual(second.get("w"), begin)
        self.assertNotEqual(first.get("w"), begin)

    def test_can_be_set_only_to_what_they_are(self):
        program, _ = line()
        exe = ty.Executor()
        exe.start(program)
        exe.set("w", np.array([[4]], np.float64))
        self.assertEqual(exe.get("w").item(), 4)
        with self.assertRaisesRegex(ty.Error, r"^variable w is f32\[1, 1\] and cannot be set to f32\[2, 2\]$"):
            exe.set("w", np.zeros((2, 2)))
        with self.assertRaisesRegex(ty.Error, r"^variable w is f32\[1, 1\] and cannot be set to i64\[1, 1\]$"):
            exe.set("w", [[1]])
        with self.assertRaisesRegex(ty.Error, '^the executor has no value of "z"'):
            exe.get("z")
        self.assertEqual(exe.names(), ["b", "learning_rate_0", "w"])

    def test_of_get_are_copies(self):
        program, _ = line()
        exe = ty.Executor()
        exe.start(program)
        before = exe.get("w")
        kept = before.copy()
        exe.run(program, feed=line_batch())
        self.assertEqual(before, kept)
        before[:] = 100
        self.assertNotEqual(exe.get("w").item(), 100)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trainyard-python.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "a" / "model"
        self.program, self.loss, _ = classifier(ty.Adam(rate=ty.ExponentialDecay(0.01, 10, 0.9)))
        self.exe = ty.Executor()
        self.exe.start(self.program)
        for i in range(10):
            self.exe.run(self.program, feed=clusters(32, seed=i))

    def test_bring_everything_back_to_the_bit(self):
        self.exe.save(self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(f"{name}.tensor" for name in self.exe.names()))
        loaded = ty.Executor()
        loaded.load(str(self.folder))
        self.assertEqual(loaded.names(), self.exe.names())
        self.assertEqual(sorted(self.program.main.persistables), loaded.names())
        for name in self.exe.names():
            self.assertEqual(loaded.get(name).dtype, self.exe.get(name).dtype)
            self.assertEqual(loaded.get(name).tobytes(), self.exe.get(name).tobytes())
        # And from there on both learn the same.
        for exe in (self.exe, loaded):
            exe.run(self.program, feed=clusters(32, seed=77))
        for name in self.exe.names():
            self.assertEqual(loaded.get(name).tobytes(), self.exe.get(name).tobytes())

    def test_that_are_missing_or_damaged_change_nothing(self):
        self.exe.save(self.folder)
        other = ty.Executor()
        other.start(self.program)
        before = {name: other.get(name).tobytes() for name in other.names()}

        def refused(message, **options):
            with self.assertRaisesRegex(ty.Error, message):
                other.load(self.folder, **options)
            self.assertEqual({name: other.get(name).tobytes() for name in other.names()}, before)

        file = self.folder / "fc_1.w_0.tensor"
        whole = file.read_bytes()
        file.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
        refused("fc_1.w_0.tensor: its checksum is not that of its bytes")
        file.write_bytes(whole + whole)
        refused("fc_1.w_0.tensor")
        file.unlink()
        refused("has no fc_1.w_0.tensor$")
        other.load(self.folder, allow_missing=True)
        self.assertEqual(other.get("fc_1.w_0").tobytes(), before["fc_1.w_0"])
        self.assertEqual(other.get("fc_0.w_0").tobytes(), self.exe.get("fc_0.w_0").tobytes())

    def test_of_another_program_are_refused(self):
        for hidden in (8, 64):
            with self.subTest(hidden=hidden):
                program, _, _ = classifier(ty.Sgd(), hidden=hidden)
                other = ty.Executor()
                other.start(program)
                other.save(self.folder)
                message = rf"fc_0.b_0.tensor: variable fc_0.b_0 is f32\[32\] and cannot be set to f32\[{hidden}\]"
                with self.assertRaisesRegex(ty.Error, message):
                    self.exe.load(self.folder)

    def test_that_cannot_be_are_said_by_name(self):
        with self.assertRaisesRegex(ty.Error, "nothing to save"):
            ty.Executor().save(self.folder)
        with self.assertRaisesRegex(ty.Error, "/nowhere"):
            self.exe.load("/nowhere")
        with self.assertRaisesRegex(ty.Error, "/proc/nowhere"):
            self.exe.save("/proc/nowhere")


class Threads(unittest.TestCase):
    def test_of_python_go_on_while_a_program_runs(self):
        program, _, _ = classifier(ty.Sgd(), width=256, hidden=256)
        exe = ty.Executor()
        exe.start(program)
        batch = clusters(256, width=256)
        running, seen, runs = threading.Event(), [], []

        def work():
            running.set()
            while not seen and len(runs) < 1000:
                exe.run(program, feed=batch)
                runs.append(1)

        worker = threading.Thread(target=work)
        # Nobody takes the interpreter from a thread: another one comes in only where it is given away.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        try:
            worker.start()
            running.wait()
            seen.append(len(runs))
            worker.join()
        finally:
            sys.setswitchinterval(interval)
        self.assertLess(seen[0], 1000)

    def test_share_an_executor_one_at_a_time(self):
        program, loss = line()
        exe = ty.Executor()
        exe.start(program)
        values, errors = [], []

        def work(seed):
            try:
                for _ in range(50):
                    x = exe.run(program, feed=line_batch(8 + seed), fetch=[loss, "x"])[1]
                    values.append(x.shape == (8 + seed, 1))
                    exe.get("w")
            except ty.Error as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual((errors, len(values), all(values)), ([], 200, True))


class Memory(unittest.TestCase):
    @staticmethod
    def resident():
        gc.collect()
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_stays_the_same_from_step_to_step(self):
        program, loss, _ = classifier(ty.Adam(), width=1024, hidden=64)
        exe = ty.Executor()
        exe.start(program)
        batch = clusters(256, width=1024)  # a MiB
        variables = [loss, "x"]

        def steps(count):
            for _ in range(count):
                exe.run(program, feed=batch, fetch=variables)
                exe.get("fc_0.w_0")
                exe.set("fc_0.w_0", exe.get("fc_0.w_0"))

        steps(20)
        before, references, objects = self.resident(), sys.getrefcount(batch["x"]), len(gc.get_objects())
        steps(200)  # which pass 400 MiB of arrays through it
        self.assertLess(self.resident() - before, 20 << 20)
        self.assertEqual(sys.getrefcount(batch["x"]), references)
        self.assertLess(len(gc.get_objects()) - objects, 50)

    def test_of_programs_that_are_gone_is_given_back(self):
        program, _, accuracy = classifier(ty.Adam(), width=1024, hidden=64)
        exe = ty.Executor()
        exe.start(program)
        batch = clusters(256, width=1024)
        for _ in range(10):
            exe.run(program.clone_for_test(), feed=batch, fetch=[accuracy])
        before = self.resident()
        for _ in range(200):
            exe.run(program.clone_for_test(), feed=batch, fetch=[accuracy])
        self.assertLess(self.resident() - before, 20 << 20)

    def test_of_nets_and_executors_is_given_back(self):
        def once():
            program, loss = line()
            exe = ty.Executor()
            exe.start(program)
            return exe.run(program, feed=line_batch(), fetch=[loss])

        for _ in range(20):
            once()
        before, objects = self.resident(), len(gc.get_objects())
        for _ in range(200):
            once()
        self.assertLess(self.resident() - before, 20 << 20)
        self.assertLess(len(gc.get_objects()) - objects, 50)


if __name__ == "__main__":
    unittest.main()
