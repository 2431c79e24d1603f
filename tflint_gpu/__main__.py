"""``python -m tflint_gpu``: the command line."""

from __future__ import annotations

from tflint_gpu.cli import main

main()
