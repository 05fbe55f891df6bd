"""The documented keys of EdgeFirst's metadata outside `outputs` and `split_hints`.

KINDS gives the kind of each value. CARRIED gives the reason why a key is copied without effect.
Undocumented keys are copied unchecked.
"""

from __future__ import annotations

from npumake.detection.entry import (
    FLAG,
    LIST,
    NUMBER,
    OBJECT,
    OBJECTS,
    SIZES,
    TEXT,
    TEXT_OR_OBJECT,
    TEXTS,
    WHOLE,
    Kind,
    one_of,
)

KINDS: dict[str, Kind] = {
    "schema_version": WHOLE,
    "host": OBJECT,
    **{f"host.{key}": TEXT for key in ("studio_server", "project_id", "session")},
    **{f"host.{key}": TEXT for key in ("organization", "username")},
    "dataset": OBJECT,
    "dataset.name": TEXT,
    "dataset.id": TEXT,
    "dataset.classes": TEXTS,
    **{key: TEXT for key in ("name", "description", "author")},
    "input": OBJECT,
    "input.shape": SIZES,
    "input.dshape": OBJECTS,
    "input.cameraadaptor": one_of("rgb", "bgr", "rgba", "bgra", "grey", "yuyv"),
    "input.input_channels": WHOLE,
    "input.output_channels": WHOLE,
    "model": OBJECT,
    **{f"model.{key}": TEXT for key in ("name", "version", "task", "backbone")},
    **{f"model.{key}": TEXT for key in ("size", "activation")},
    **{f"model.{key}": FLAG for key in ("detection", "segmentation", "classification", "end2end")},
    "model.anchors": LIST,
    **{key: OBJECT for key in ("trainer", "optimizer", "augmentation", "validation", "export")},
    "validation.iou": NUMBER,
    "validation.score": NUMBER,
    "validation.nms": one_of("none", "numpy", "hal", "tensorflow", "torch"),
    "validation.normalization": TEXT,
    "validation.preprocessing": TEXT,
    "decoder_version": TEXT,
    "nms": one_of("class_agnostic", "class_aware"),
    "calibration": TEXT,
    "split_hints": OBJECTS,
    "outputs": OBJECTS,
    "compilation": OBJECT,
    "compilation.target": TEXT,
    "compilation.format": TEXT,
    "compilation.hw_metadata": OBJECT,
    "compilation.ppa": OBJECT,
    **{
        f"{converter}{key}": kind
        for converter in ("tflite_quantizer", "ara2", "hailo", "neutron")
        for key, kind in {
            "": OBJECT,
            ".version": TEXT,
            ".timestamp": TEXT,
            ".task": TEXT,
            ".splits_applied": TEXTS,
            ".calibration": TEXT_OR_OBJECT,
            ".calibration_geometry": OBJECT,
        }.items()
    },
    **{f"ara2.{key}": TEXT for key in ("target", "int16_mode")},
    "ara2.qmode": WHOLE,
    "ara2.ppa": OBJECT,
    **{f"tflite_quantizer.{key}": TEXT for key in ("tensorflow_version", "input_dtype")},
    **{f"tflite_quantizer.{key}": TEXT for key in ("output_dtype", "quantizer")},
    "tflite_quantizer.calibration_samples": WHOLE,
}

# The keys with an effect; sections 2 to 5 of the schema have no others.
ACTED_ON = (
    *("schema_version", "dataset", "dataset.classes", "input", "input.shape", "model"),
    *("model.end2end", "model.task", "nms", "split_hints", "outputs"),
)

_TRAINING = "a record of the training"
_PEOPLE = "it names the model and its makers"
_OTHERS = "the record of a converter that ran before"
_BOARD = "figures of the vendor's compiler"

_WHY = {
    "host": "where the model was trained; no server is contacted",
    "dataset": _TRAINING,
    "name": _PEOPLE,
    "description": _PEOPLE,
    "author": _PEOPLE,
    "input": "the model's own input has it; color format and layout are under `inputs:`",
    "model": "the graph itself defines the model",
    "trainer": _TRAINING,
    "optimizer": _TRAINING,
    "augmentation": _TRAINING,
    "validation": "the trainer's metric; `evaluation:` has that of the project",
    "export": _TRAINING,
    "decoder_version": "`outputs` define the decoding",
    "calibration": "a name only; the file is under `data:`",
    "compilation": _BOARD,
    "tflite_quantizer": _OTHERS,
    "ara2": _OTHERS,
    "hailo": _OTHERS,
    "neutron": _OTHERS,
}
CARRIED: dict[str, str] = {key: _WHY[key.partition(".")[0]] for key in KINDS if key not in ACTED_ON}
