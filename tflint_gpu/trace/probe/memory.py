"""How much memory the steps of a run take at most, and how much there is: that of the GPU where there is one."""

import os

try:
    import resource
except ImportError:  # Windows has none.
    resource = None

#: Of the memory that there is, leave this share to others and to what larger batches need beside their tensors.
SPARE = 0.1

#: What bounds a group of processes, and what it takes now: control groups in their second and first version.
GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


class Room:
    """The memory that larger batches need, in bytes: the `limit`, and the peak of a while; None where unknown."""

    def __init__(self, run):
        self.run = run
        self.known = None

    @property
    def limit(self):
        """Return the bytes that a run may take, None where that cannot be told."""
        if self.known is None:
            total = gpu_limit() if self.on_gpu else host_limit()
            self.known = [None if total is None else total * (1 - SPARE)]
        return self.known[0]

    def begin(self):
        """Forget the peak so far; return whether that is possible here."""
        return self._begin_gpu() if self.on_gpu else forget_host_peak()

    def peak(self):
        """Return the most bytes that were in use at once since `begin`, or where it cannot forget, ever."""
        if not self.on_gpu:
            return host_peak()
        try:
            return int(self.run.tensorflow.config.experimental.get_memory_info("GPU:0")["peak"])
        except (AttributeError, ValueError):
            return None

    def _begin_gpu(self):
        try:
            self.run.tensorflow.config.experimental.reset_memory_stats("GPU:0")
        except (AttributeError, ValueError):
            return False
        return True

    @property
    def on_gpu(self):
        """Whether the memory is that of a GPU; without one it is that of the process."""
        tf = self.run.tensorflow
        return tf is not None and bool(tf.config.list_logical_devices("GPU"))


def gpu_limit():
    """Return the bytes that TensorFlow may take of the first GPU."""
    from tensorflow.python.client import device_lib

    limits = [device.memory_limit for device in device_lib.list_local_devices() if device.device_type == "GPU"]
    return limits[0] if limits and limits[0] > 0 else None


def host_limit(meminfo="/proc/meminfo", groups=GROUPS):
    """Return the bytes that this process takes and may still take; None where the system does not tell.

    The least of what the machine has left, what the control group leaves, and the process' own limit.
    """
    used, mapped = status("VmRSS"), status("VmSize")
    free = lines_of(meminfo).get("MemAvailable")
    if used is None or free is None:
        return None
    left = [free] + [limit - now for limit, now in map(group, groups) if None not in (limit, now)]
    own = resource.getrlimit(resource.RLIMIT_AS)[0] if resource is not None else -1
    if resource is not None and own != resource.RLIM_INFINITY and mapped is not None:
        left.append(own - mapped)
    return used + max(0, min(left))


def group(files):
    """Return the bytes that a control group may take, and takes; None where it is not bound."""
    return tuple(number_in(path) for path in files)


def number_in(path):
    """Return the number that a file holds, None for a word or no file."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def host_peak():
    """Return the most bytes of main memory that this process has used, since `forget_host_peak` if that works."""
    told = status("VmHWM")
    if told is not None or resource is None:
        return told
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_host_peak():
    """Have Linux begin anew with the peak of this process; return whether it does."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True


def status(name):
    """Return a figure that Linux tells of this process, in bytes, None elsewhere."""
    return lines_of("/proc/%d/status" % os.getpid()).get(name)


def lines_of(path):
    """Return the figures of a file of Linux' by name, in bytes; none where there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file if line.rstrip().endswith(" kB")]
    except OSError:
        return {}
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}
