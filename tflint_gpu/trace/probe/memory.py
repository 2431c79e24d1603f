"""How much memory a run has used at most, and how much there is: that of the GPU where there is one."""

try:
    import resource
except ImportError:  # Windows has none.
    resource = None

#: Of the memory that there is, leave this share to others and to what larger batches need beside their tensors.
SPARE = 0.1


class Room:
    """The memory that larger batches need: its `limit` and the `peak` so far, in bytes; None where unknown."""

    def __init__(self, run):
        self.run = run
        self.known = None

    @property
    def limit(self):
        """Return the bytes that a run may take, None where that cannot be told."""
        if self.known is None:
            total = gpu_limit() if self._on_gpu() else host_limit()
            self.known = [None if total is None else total * (1 - SPARE)]
        return self.known[0]

    def peak(self):
        """Return the most bytes that were in use at once since the last call, on a CPU since the program began."""
        if not self._on_gpu():
            return host_peak()
        memory = self.run.tensorflow.config.experimental
        try:
            used = int(memory.get_memory_info("GPU:0")["peak"])
            memory.reset_memory_stats("GPU:0")
        except (AttributeError, ValueError):
            return None
        return used

    def _on_gpu(self):
        tf = self.run.tensorflow
        return tf is not None and bool(tf.config.list_logical_devices("GPU"))


def gpu_limit():
    """Return the bytes that TensorFlow may take of the first GPU."""
    from tensorflow.python.client import device_lib

    limits = [device.memory_limit for device in device_lib.list_local_devices() if device.device_type == "GPU"]
    return limits[0] if limits and limits[0] > 0 else None


def host_limit(path="/proc/meminfo"):
    """Return the bytes that this process takes and may still take; None where the system does not tell."""
    try:
        with open(path, encoding="ascii") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    used = host_peak()
    return None if used is None else used + free


def host_peak():
    """Return the most bytes of main memory that this process has used, None where the system does not tell."""
    return None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
