"""The kernel registry of the running TensorFlow, asked op by op. Part of the probe: stdlib + TensorFlow."""

import collections


def has_gpu():
    """Say whether TensorFlow sees a GPU; initialises nothing."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def cuda_build():
    """Say whether this TensorFlow was built with CUDA: only then does its registry know GPU kernels."""
    import tensorflow as tf

    return tf.test.is_built_with_cuda()


class Kernels:
    """The kernel registry of this process: which op and dtype has a kernel for which device."""

    def __init__(self):
        from tensorflow.python.framework import kernels, op_def_registry

        self._ops = op_def_registry
        self._by_op = collections.defaultdict(lambda: collections.defaultdict(list))
        for kernel in kernels.get_all_registered_kernels().kernel:
            if not kernel.label:
                self._by_op[kernel.op][kernel.device_type].append(kernel)
        self._knows_xla = any("XLA_GPU_JIT" in devices for devices in self._by_op.values())

    def place(self, op):
        """Return (``cpu`` | ``gpu``, why) for `op` on a machine with a GPU; (None, "") where it has no kernels."""
        devices = self._by_op.get(op.type)
        if not devices or not any(devices.get(kind) for kind in ("CPU", "GPU", "DEFAULT")):
            return None, ""
        candidates = devices.get("GPU", []) + devices.get("DEFAULT", [])
        if not candidates:
            return "cpu", "no-kernel"
        match = next((k for k in candidates if self._fits(k, op)), None)
        if match is None:
            return "cpu", "dtype"
        return ("cpu", "host-memory") if self.on_host(match, op.type) else ("gpu", "")

    def compiles(self, op):
        """Say whether XLA has a kernel for `op`; None where this process has not loaded XLA's kernels."""
        if not self._knows_xla or op.type not in self._by_op:
            return None
        return "XLA_GPU_JIT" in self._by_op[op.type]

    def _fits(self, kernel, op):
        attributes = op.node_def.attr
        for constraint in kernel.constraint:
            allowed = constraint.allowed_values.list.type
            if constraint.name not in attributes or not allowed:
                continue
            value = attributes[constraint.name]
            if not set(value.list.type or [value.type]) <= set(allowed):
                return False
        return True

    def on_host(self, kernel, op_type):
        """Say whether all that `kernel` reads and writes stays in host memory, whatever device it is for."""
        definition = self._ops.get(op_type)
        if definition is None:
            return False
        outputs = {arg.name for arg in definition.output_arg}
        inputs = {arg.name for arg in definition.input_arg}
        return bool(outputs) and outputs | inputs <= set(kernel.host_memory_arg)
