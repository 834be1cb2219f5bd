"""Models for elastic jobs: what `trainyard train --model FILE` runs.

A model is a file of Python. It has either a net,

    def net(job):                      # job: what was asked for, as job.minibatch, job.params["width"]
        net = ty.Net("mnist")
        image, label = net.read(sources=job.training_data, fields=[...])
        ...
        return net

which workers written in C++ train, or functions of its own on PyTorch or plain NumPy:

    def model(): ...                                # a torch.nn.Module, or an object with `parameters` and `gradients`
    def loss(outputs, labels): ...                  # one number, for PyTorch
    def optimizer(): return ty.Adam(rate=0.001)     # how the master learns
    def dataset_fn(records, mode): ...              # records of a minibatch -> features, labels
    def eval_metrics_fn(outputs, labels): ...       # {"accuracy": 0.97}
    def prediction_writer(task, outputs): ...       # named by --writer; else a RecordIO file for each task
    def rows(source): ...                           # named by --data-reader; else record files are read

`mode` is "training", "evaluation" or "prediction". Every function may also take a keyword `job`.
"""

from trainyard.elastic.job import Job
from trainyard.elastic.model import load_model

__all__ = ["Job", "load_model"]
