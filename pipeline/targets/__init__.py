"""Chips as data: one `<vendor>/<chip>.yaml` each, and its line in TARGETS.

`target` holds the type; `read_target` finds and checks the file. Stages see only the type, so a
new chip wakes nobody. The room refuses to know how anything is quantized or run.
"""

TARGETS = (
    "arm/ethos-u55-128",
    "arm/ethos-u55-256",
    "arm/ethos-u55-32",
    "arm/ethos-u55-64",
    "arm/ethos-u65-256",
    "arm/ethos-u65-512",
    "arm/ethos-u85-1024",
    "arm/ethos-u85-128",
    "arm/ethos-u85-2048",
    "arm/ethos-u85-256",
    "arm/ethos-u85-512",
    "drobotics/rdk-ultra",
    "drobotics/rdk-x3",
    "drobotics/rdk-x5",
    "edgefirst/ara240",
    "horizon/nash-b",
    "horizon/nash-e",
    "horizon/nash-h",
    "horizon/nash-m",
    "horizon/nash-p",
    "iree/iree-cortex-a53",
    "iree/iree-cortex-a55",
    "iree/iree-cpu",
    "synaptics/dvf120",
    "synaptics/sl1620",
    "synaptics/sl1640",
    "synaptics/sl1680",
    "synaptics/synap-generic",
    "synaptics/vs640",
    "synaptics/vs680",
    "tflite/tflite",
)
