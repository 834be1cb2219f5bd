"""Programs that read their batches themselves."""

import pathlib
import struct
import tempfile
import unittest

import numpy as np

import trainyard as ty
from nets import clusters


def write_idx(path, array):
    """An IDX file: bytes, with the dims before them."""
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(head + array.astype(np.uint8).tobytes())


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trainyard-python.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def passes(self, program, fetch, count):
        """The values of every batch of so many passes."""
        exe = ty.Executor()
        exe.start(program)
        passes = []
        for _ in range(count):
            batches = []
            while True:
                try:
                    batches.append(exe.run(program, fetch=fetch))
                except ty.EndOfPass:
                    break
            passes.append(batches)
        return passes

    def test_gives_every_record_of_a_csv_once_in_a_pass(self):
        (self.folder / "a.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
        (self.folder / "b.csv").write_text("a,b,label\n5,6,1\n")
        net = ty.Net("csv")
        x, label = net.read(sources=[f"{self.folder}/*.csv"], format="csv", batch_size=2, skip_header=True,
                            fields=[ty.Field("x", [2], scale=0.5), ty.Field("label", [1], dtype="i64")])
        for batches in self.passes(net.finish(), [x, label], 3):
            self.assertEqual([batch[0].shape for batch in batches], [(2, 2), (1, 2)])
            np.testing.assert_array_equal(np.concatenate([batch[0] for batch in batches]),
                                          [[0.5, 1], [1.5, 2], [2.5, 3]])
            np.testing.assert_array_equal(np.concatenate([batch[1] for batch in batches]), [[0], [1], [1]])

    def test_shuffles_each_pass_anew_and_loses_nothing(self):
        (self.folder / "a.csv").write_text("".join(f"{i}\n" for i in range(100)))
        net = ty.Net("csv")
        x, = net.read(sources=[f"{self.folder}/a.csv"], format="csv", batch_size=8, shuffle_seed=5,
                      fields=[ty.Field("x", [1], dtype="i64")])
        first, second = [np.concatenate([batch[0] for batch in batches])[:, 0].tolist()
                         for batches in self.passes(net.finish(), [x], 2)]
        self.assertEqual(sorted(first), list(range(100)))
        self.assertEqual(sorted(second), list(range(100)))
        self.assertNotEqual(first, second)
        self.assertNotEqual(first, sorted(first))

    def test_learns_from_images_and_labels_of_two_files(self):
        data = clusters(600, width=16)
        low, high = data["x"].min(), data["x"].max()
        write_idx(self.folder / "images", np.round((data["x"] - low) / (high - low) * 255))
        write_idx(self.folder / "labels", data["label"][:, 0])
        net = ty.Net("idx", seed=7)
        image, label = net.read(sources=[str(self.folder / "images"), str(self.folder / "labels")], format="idx",
                                batch_size=50, shuffle_seed=1,
                                fields=[ty.Field("image", [16], scale=1 / 255),
                                        ty.Field("label", [1], dtype="i64", source=1)])
        logits = net.fc(net.fc(image, 32, act="relu"), 3)
        accuracy = net.accuracy(logits, label)
        net.minimize(net.mean(net.softmax_with_cross_entropy(logits, label)), ty.Adam(rate=0.01))
        passes = self.passes(net.finish(), [accuracy], 12)
        self.assertEqual([len(batches) for batches in passes], [12] * 12)
        self.assertGreaterEqual(np.mean([batch[0] for batch in passes[-1]]), 0.95)

    def test_says_which_file_is_missing(self):
        net = ty.Net("csv")
        net.read(sources=[f"{self.folder}/none.csv"], format="csv", fields=[ty.Field("x", [1])])
        with self.assertRaisesRegex(ty.Error, "none.csv"):
            ty.Executor().run(net.finish())

    def test_is_done_by_one_reader(self):
        (self.folder / "a.csv").write_text("1\n")
        net = ty.Net("csv")
        for name in ("x", "y"):
            net.read(sources=[f"{self.folder}/a.csv"], format="csv", fields=[ty.Field(name, [1])])
        with self.assertRaisesRegex(ty.Error, "^program csv.main reads twice"):
            ty.Executor().run(net.finish())


if __name__ == "__main__":
    unittest.main()
