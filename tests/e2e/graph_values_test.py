"""What graph jobs learn: the same as one process does, from values that were saved elsewhere and for others to load.

usage: graph_values_test.py TRAINYARD [unittest arguments]
"""

import os
import struct
import tempfile

import graph_jobs
from graph_jobs import GraphJobCase, line_program, write_line

RECORDS = 256
BATCH = 16


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(">%dI" % array.ndim, *array.shape))
        file.write(array.astype("uint8").tobytes())


def write_digits(folder):
    """Images of ten kinds, as MNIST has them: a bright row at the place of the digit, and noise."""
    np = graph_jobs.np
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 10, RECORDS)
    images = rng.integers(0, 60, (RECORDS, 28, 28))
    for image, label in zip(images, labels):
        image[2 * label + 3:2 * label + 5] += 150
    write_idx(os.path.join(folder, "images"), images)
    write_idx(os.path.join(folder, "labels"), labels)


def conv_program(folder, batch):
    """A small convolutional net with random initialisers, as the book's is built, with adam."""
    ty = graph_jobs.ty
    net = ty.Net("digits", seed=11)
    image, label = net.read(sources=[os.path.join(folder, "images"), os.path.join(folder, "labels")], format="idx",
                            batch_size=batch,
                            fields=[ty.Field("image", [1, 28, 28], scale=1 / 255),
                                    ty.Field("label", [1], dtype="i64", source=1)])
    hidden = net.pool2d(net.conv2d(image, 8, 5, act="relu"), 2, stride=2)
    hidden = net.pool2d(net.conv2d(hidden, 16, 5, act="relu"), 2, stride=2)
    logits = net.fc(hidden, 10)
    loss = net.mean(net.softmax_with_cross_entropy(logits, label))
    net.output(loss)
    net.minimize(loss, ty.Adam(rate=0.003))
    return net.finish(), loss.name


class Values(GraphJobCase):
    def train_here(self, program, steps):
        executor = graph_jobs.ty.Executor()
        executor.start(program)
        done = 0
        while done < steps:
            try:
                executor.run(program)
                done += 1
            except graph_jobs.ty.EndOfPass:
                pass
        return executor

    def test_of_two_trainers_and_two_pservers_are_those_of_one_process(self):
        """Two trainers with half a batch each make the steps that one process makes with whole batches of the same
        records: the trainers read the two halves of the data, so here the halves are interleaved by batches."""
        np = graph_jobs.np
        write_digits(self.folder)
        program, loss = conv_program(self.folder, BATCH)
        job = self.start("conv", program, passes=3)
        outputs = list(job.trainers.get(loss))
        steps = 3 * RECORDS // (2 * BATCH)
        self.assertEqual(job.status().steps, steps)
        self.assertEqual(len(outputs), 2 * steps)
        distributed = self.variables(program, self.saved(job))

        halves = tempfile.mkdtemp(dir=self.folder)
        for name in ("images", "labels"):
            with open(os.path.join(self.folder, name), "rb") as file:
                data = file.read()
            rank = data[3]
            shape = struct.unpack(">%dI" % rank, data[4:4 + 4 * rank])
            whole = np.frombuffer(data[4 + 4 * rank:], "uint8").reshape(shape)
            half = RECORDS // 2
            mixed = [whole[start + half * part:start + half * part + BATCH] for start in range(0, half, BATCH)
                     for part in (0, 1)]
            write_idx(os.path.join(halves, name), np.concatenate(mixed))
        local_program, _ = conv_program(halves, 2 * BATCH)
        local = self.train_here(local_program, steps)
        self.assertEqual(sorted(distributed), sorted(local.names()))
        for name, value in distributed.items():
            np.testing.assert_allclose(value, local.get(name), rtol=0, atol=1e-6, err_msg=name)

    def test_that_were_saved_here_are_loaded_there_and_come_back_as_they_were(self):
        np = graph_jobs.np
        ty = graph_jobs.ty
        data = os.path.join(self.folder, "line.csv")
        write_line(data, records=512)
        program, _ = line_program(data)
        here = self.train_here(program, 10)
        folder = os.path.join(self.folder, "saved")
        here.save(folder)
        t_graphs, p_graphs = ty.dist_transpiler(program, trainers_num=2, pservers_num=2, min_block_elements=16)
        job = self.yard.init_job("values")
        self.addCleanup(self.remove, "values")
        job.add_workers(t_graphs)
        job.add_workers(p_graphs)
        job.load(folder)
        back = self.variables(program, self.saved(job))
        self.assertEqual(sorted(back), here.names())
        for name, value in back.items():
            np.testing.assert_array_equal(value, here.get(name), err_msg=name)
        # And that is where the job begins.
        job.pservers.start()
        job.trainers.start()
        self.assertTrue(job.wait(60))
        trained = self.variables(program, self.saved(job))
        counters = [name for name in trained if "pow" in name]
        self.assertTrue(counters)
        for name in counters:
            self.assertLess(float(trained[name][0]), float(back[name][0]), "it went on from there")

    def test_that_do_not_fit_are_refused_by_name(self):
        ty = graph_jobs.ty
        data = os.path.join(self.folder, "line.csv")
        write_line(data, records=64)
        program, _ = line_program(data)
        other, _ = line_program(data, hidden=32)
        executor = ty.Executor()
        executor.start(other)
        folder = os.path.join(self.folder, "other")
        executor.save(folder)
        t_graphs, p_graphs = ty.dist_transpiler(program)
        job = self.yard.init_job("misfit")
        self.addCleanup(job.stop)
        job.add_workers(t_graphs)
        job.add_workers(p_graphs)
        with self.assertRaisesRegex(ty.Error, r"variable fc_0.b_0 is f32\[64\] and cannot be set to f32\[32\]"):
            job.load(folder)
        with self.assertRaisesRegex(ty.Error, "nowhere"):
            job.load(os.path.join(self.folder, "nowhere"))
        with self.assertRaisesRegex(ty.Error, "has not been started: there is nothing to save"):
            job.save(os.path.join(self.folder, "x"))


class ValuesOnEtcd(Values):
    on_etcd = True


if __name__ == "__main__":
    graph_jobs.main()
