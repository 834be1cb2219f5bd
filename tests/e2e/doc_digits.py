"""Images of ten kinds that are easy to tell apart, for commands of documents that would train for minutes with real ones.

usage: doc_digits.py FOLDER COUNT [SEED]      as record files: FOLDER/data-00000, 784 float32 and an int64 each
       doc_digits.py --idx FILE-PREFIX COUNT  as MNIST's own files, packed: PREFIX-images.gz, PREFIX-labels.gz
"""

import gzip
import os
import struct
import sys
import zlib

import numpy as np

CHUNK = 500  # records


def digits(count, seed):
    labels = np.random.default_rng(seed).integers(0, 10, count)
    kinds = np.random.default_rng(0).integers(0, 256, (10, 784))
    noise = np.random.default_rng(seed + 1).integers(-90, 90, (count, 784))
    return np.clip(kinds[labels] + noise, 0, 255), labels


def write_records(folder, count, seed):
    images, labels = digits(count, seed)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "data-00000"), "wb") as file:
        for first in range(0, count, CHUNK):
            records = [image.tobytes() + struct.pack("<q", label) for image, label in
                       zip((images[first:first + CHUNK] / 255).astype("<f4"), labels[first:first + CHUNK])]
            payload = b"".join(struct.pack("<I", len(record)) + record for record in records)
            file.write(struct.pack("<5I", 0x01020304, zlib.crc32(payload), 0, len(payload), len(records)) + payload)


def write_idx(prefix, count):
    """Few different ones, so that packing them takes no time."""
    images, labels = digits(20, 1)
    images[images < 200] = 0
    times = count // 20
    with gzip.open(prefix + "images.gz", "wb", compresslevel=1) as file:
        file.write(struct.pack(">IIII", 0x803, count, 28, 28) + images.astype(np.uint8).tobytes() * times)
    with gzip.open(prefix + "labels.gz", "wb", compresslevel=1) as file:
        file.write(struct.pack(">II", 0x801, count) + labels.astype(np.uint8).tobytes() * times)


if __name__ == "__main__":
    if sys.argv[1] == "--idx":
        write_idx(sys.argv[2], int(sys.argv[3]))
    else:
        write_records(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
