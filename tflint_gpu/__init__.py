"""tflint-gpu: a linter that asks why the GPU is idle, and checks its suspicions against a short run."""

__version__ = "0.1.0"

#: The entry-point group in which other packages name their rules.
PLUGINS = "tflint_gpu.checks"
