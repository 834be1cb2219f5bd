"""What the examples share: their arguments, training in this process or as a job, and the mark at the end."""

import argparse
import contextlib
import os
import sys
import tempfile
import time

import numpy as np

import trainyard as ty

TELL_EVERY = 2.0  # seconds between two lines of progress


class Model:
    """What an example builds: the program that trains, its loss, and the variable that is measured at the end."""

    def __init__(self, program, loss, figure):
        self.program, self.loss, self.figure = program, loss, figure


def parser(description, *, name, passes, batch, rate):
    """The arguments that all examples have."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--local", action="store_true", help="train in this process, without a cluster")
    arguments.add_argument("--trainers", type=int, default=2, help="of the job")
    arguments.add_argument("--pservers", type=int, default=2, help="of the job")
    arguments.add_argument("--mode", choices=("sync", "async"), default="sync", help="of the job")
    arguments.add_argument("--passes", type=int, default=passes, help="over the training data")
    arguments.add_argument("--batch", type=int, default=batch, help="records of one step of one trainer")
    arguments.add_argument("--rate", type=float, default=rate, help="the learning rate")
    arguments.add_argument("--name", default=name, help="of the job; one of that name is killed first")
    arguments.add_argument("--storage", default="", help="where the cluster keeps files; the embedded one knows")
    arguments.add_argument("--image", default="trainyard", help="of the pods; the embedded cluster needs none")
    return arguments


@contextlib.contextmanager
def folder_for_data(given):
    """The folder that was given, or one that goes when the example ends."""
    if given:
        os.makedirs(given, exist_ok=True)
        yield os.path.abspath(given)
        return
    with tempfile.TemporaryDirectory(prefix="trainyard-data.") as folder:
        yield folder


def train(args, model):
    """Trains the model as the arguments say. Returns an executor that has what was learnt."""
    executor = ty.Executor()
    executor.start(model.program)
    begin = time.monotonic()
    if args.local:
        train_here(args, model, executor)
    else:
        with tempfile.TemporaryDirectory(prefix="trainyard-model.") as folder:
            train_as_job(args, model, folder)
            executor.load(folder)
    print(f"trained in {time.monotonic() - begin:.1f} s", flush=True)
    return executor


def train_here(args, model, executor):
    """In this process, batch after batch."""
    progress = Progress()
    step = 0
    for pass_num in range(args.passes):
        with contextlib.suppress(ty.EndOfPass):
            while True:
                loss, = executor.run(model.program, fetch=[model.loss])
                progress.tell(f"pass {pass_num} step {step}", float(loss[0]))
                step += 1


def train_as_job(args, model, folder):
    """As graphs in the cluster that kubectl would use, or the embedded one; what they learn is saved in the folder."""
    trainer_graphs, pserver_graphs = ty.dist_transpiler(model.program, trainers_num=args.trainers,
                                                        trainer_pass_num=args.passes, pservers_num=args.pservers,
                                                        mode=args.mode)
    yard = ty.Yard(storage=args.storage, image=args.image)
    if yard.find(args.name):
        yard.kill(args.name)
    job = yard.init_job(args.name, run_type="foreground")
    try:
        trainers = job.add_workers(trainer_graphs)
        pservers = job.add_workers(pserver_graphs)
        pservers.start()
        trainers.start()
        progress = Progress()
        for output in trainers.get(model.loss):
            progress.tell(f"{output.graph} pass {output.pass_num} step {output.step}", float(output))
        job.save(folder)
    finally:
        job.stop()


class Progress:
    """A line now and then: where it is, and the mean loss since the last line."""

    def __init__(self):
        self.next = time.monotonic()
        self.losses = []

    def tell(self, where, loss):
        self.losses.append(loss)
        if time.monotonic() >= self.next:
            print(f"{where} loss {np.mean(self.losses):.4f}", flush=True)
            self.next = time.monotonic() + TELL_EVERY
            self.losses = []


def measure(executor, model, feed, batch=1000):
    """The mean of the model's figure over arrays that it was not trained with: {name: array}, one row a record."""
    test = model.program.clone_for_test()
    records = len(next(iter(feed.values())))
    total = 0.0
    for begin in range(0, records, batch):
        rows = {name: array[begin:begin + batch] for name, array in feed.items()}
        figure, = executor.run(test, feed=rows, fetch=[model.figure])
        total += float(figure[0]) * len(next(iter(rows.values())))
    return total / records


def judge(what, value, *, below=None, least=None):
    """Prints the figure, and fails if it misses its mark."""
    print(f"{what}: {value:.4f}", flush=True)
    if below is not None and not value < below:
        miss(what, value, f"below {below:.4f}")
    if least is not None and not value >= least:
        miss(what, value, f"{least:.4f} or more")


def miss(what, value, mark):
    raise ty.Error(f"the {what} should be {mark} and is {value:.4f}: try more --passes or another --rate")


def run(main):
    """Runs an example; what goes wrong is one line, and exit code 1."""
    try:
        main()
    except (ty.Error, OSError) as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
