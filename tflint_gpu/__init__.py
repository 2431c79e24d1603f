"""tflint-gpu: a linter that asks why the GPU is idle, and checks its suspicions against a short run."""

__version__ = "0.1.0"
