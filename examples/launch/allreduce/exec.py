"""Handwritten digits, learnt by all workers together: PyTorch's DistributedDataParallel over gloo (Debian: python3-torch).

Every few batches rank 0 saves how far it is, and after a restart all go on from there, also with another number of workers.

DATA                folder with MNIST's four files (train-images*, train-labels*, t10k-images*, t10k-labels*);
                    unset: digits are made up
CHECKPOINT          file that is gone on from, where every node that may have rank 0 sees it; unset: a restart begins anew
CHECKPOINT_BATCHES  batches between two checkpoints (10)
EPOCHS              how often each record is used (3)
"""

import datetime
import glob
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 128  # of all workers together: so a checkpoint means the same to any number of them
DATA = os.environ.get("DATA")
CHECKPOINT = os.environ.get("CHECKPOINT")
CHECKPOINT_BATCHES = int(os.environ.get("CHECKPOINT_BATCHES", "10"))
EPOCHS = int(os.environ.get("EPOCHS", "3"))


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def read_idx(pattern):
    """A file of bytes as MNIST has them: a magic number whose last byte is the rank, the sizes, the bytes."""
    paths = glob.glob(os.path.join(DATA, pattern))
    if len(paths) != 1:
        raise SystemExit("DATA must have one file %s, and %s has %d" % (pattern, DATA, len(paths)))
    with open(paths[0], "rb") as file:
        data = file.read()
    if data[:3] != b"\0\0\x08":
        raise SystemExit("%s is no IDX file of bytes; is it packed?" % paths[0])
    sizes = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, int(np.prod(sizes)), 4 + 4 * data[3]).reshape(sizes)


def make_digits(count, seed):
    """Ten kinds of images that are easy to tell apart."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    patterns = np.random.default_rng(0).integers(0, 256, (10, 784))
    return np.clip(patterns[labels] + random.integers(-60, 60, (count, 784)), 0, 255), labels


def load(name, count, seed):
    if DATA:
        images, labels = read_idx(name + "-images*"), read_idx(name + "-labels*")
    else:
        images, labels = make_digits(count, seed)
    images = images.reshape(len(labels), 784).astype(np.float32) / 255
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))


def save(model, optimizer, epoch, batch):
    """The file is always whole: it is written aside, and takes its name at once."""
    if not CHECKPOINT or dist.get_rank() != 0:
        return
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "batch": batch}
    aside = CHECKPOINT + ".new"
    with open(aside, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, CHECKPOINT)


def resume(model, optimizer):
    """(epoch, batch) to go on with. Rank 0 reads and tells the others: they need not see the file, and go on from the same."""
    states = [None]
    if dist.get_rank() == 0 and CHECKPOINT and os.path.exists(CHECKPOINT):
        states = [torch.load(CHECKPOINT, map_location="cpu")]
    dist.broadcast_object_list(states, src=0)
    if states[0] is None:
        return 0, 0
    model.load_state_dict(states[0]["model"])
    optimizer.load_state_dict(states[0]["optimizer"])
    return states[0]["epoch"], states[0]["batch"]


def train(images, labels):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    first, done = resume(net, optimizer)
    if (first, done) != (0, 0):
        say("goes on from the checkpoint: epoch %d, batch %d" % (first + 1, done))
    model = DistributedDataParallel(net)
    for epoch in range(first, EPOCHS):
        order = torch.from_numpy(np.random.default_rng(epoch).permutation(len(labels)))  # the same on all
        total, count = torch.zeros(1), 0
        for batch, chosen in enumerate(order.split(BATCH)):
            if batch < done:
                continue
            mine = chosen[rank::world]
            loss = nn.functional.cross_entropy(model(images[mine]), labels[mine], reduction="sum")
            optimizer.zero_grad()
            (loss * world / len(chosen)).backward()  # gradients become the mean over the workers: of the whole batch
            optimizer.step()
            total += loss.detach()
            count += len(chosen)
            if (batch + 1) % CHECKPOINT_BATCHES == 0:
                save(model, optimizer, epoch, batch + 1)
        dist.all_reduce(total)
        say("epoch %d of %d: loss %.4f" % (epoch + 1, EPOCHS, total.item() / max(count, 1)))
        done = 0
        save(model, optimizer, epoch + 1, 0)
    return net


def main():
    torch.set_num_threads(1)  # workers may share a machine
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=5))  # MASTER_ADDR, RANK and so on are set
    say("%d workers learn %s" % (dist.get_world_size(), "the digits of " + DATA if DATA else "digits that are made up"))
    if not CHECKPOINT:
        say("CHECKPOINT is not set: a restart begins anew")
    net = train(*load("train", 6000, 1))
    if dist.get_rank() == 0:
        images, labels = load("t10k", 1000, 2)
        with torch.no_grad():
            say("accuracy %.4f" % (net(images).argmax(dim=1) == labels).float().mean().item())
    dist.barrier()


if __name__ == "__main__":
    main()
