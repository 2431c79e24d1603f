"""The part of a trace that runs inside the user's interpreter: standard library and the user's TensorFlow only.

It must run on Python 3.8 and is loaded by path under the name ``_tflint_gpu_probe`` (see `start`), so every import
in here is relative and nothing of `tflint_gpu` is touched.
"""
