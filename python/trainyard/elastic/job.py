"""What an elastic job was asked to do, as its model sees it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Job:
    """The fields of the job that models have a use for; `all` has every one."""

    name: str
    kind: str
    minibatch: int
    epochs: int
    seed: int
    params: dict[str, str]
    training_data: list[str]
    validation_data: list[str]
    prediction_data: list[str]
    output: str
    writer: str
    data_reader: str
    all: dict[str, Any]

    @classmethod
    def from_json(cls, text: str) -> Job:
        job = json.loads(text)
        return cls(name=job["name"], kind=job["kind"], minibatch=job["minibatch"], epochs=job["epochs"], seed=job["seed"],
                   params=job["params"], training_data=job["trainingData"], validation_data=job["validationData"],
                   prediction_data=job["predictionData"], output=job["output"], writer=job["writer"],
                   data_reader=job["dataReader"], all=job)

    def sources(self, kind: str) -> list[str]:
        """What is read for "training", "evaluation" or "prediction"."""
        return {"training": self.training_data, "evaluation": self.validation_data,
                "prediction": self.prediction_data}[kind]

    def told_records(self, kind: str) -> int:
        """How many records these have, where a reader of the model's own reads them; 0: nobody has said it yet."""
        return self.all[{"training": "trainingRecords", "evaluation": "validationRecords",
                         "prediction": "predictionRecords"}[kind]]
