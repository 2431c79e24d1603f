"""Imported once by the process that others are forked from, so that each of them has all rules from the start."""

from __future__ import annotations

import importlib

from tflint_gpu.checks import builtin_pages, load_check

importlib.import_module("tflint_gpu.program.build")
for _page in builtin_pages():
    load_check(_page)
