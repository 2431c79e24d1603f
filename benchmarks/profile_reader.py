"""Time the reading of a large profile.

    python benchmarks/profile_reader.py [--publish] [FILE.xplane.pb]

Without a file it makes one of 100 MB: steps with kernels, launches, executor ops and a tf.data pipeline, and
reads it in a process of its own. Prints size, steps, seconds (wall and CPU) and peak memory beside their bounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from page import publish

from tflint_gpu.trace.profile import read_profile
from tflint_gpu.trace.profile.messages import message

MEGABYTES = 100
#: What a profile of 100 MB may take: seconds and MB.
SECONDS, PEAK = 20.0, 1000.0
KERNELS_PER_STEP = 500


def main() -> None:
    """Read the given profile, or one made for the purpose, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    parser.add_argument("file", nargs="?", type=Path, help="a profile of yours")
    given = parser.parse_args()
    if given.file is not None:
        told = report(given.file)
        print(told)
        if given.publish:
            publish("profile reader", told)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.xplane.pb"
        file.write_bytes(made(MEGABYTES * 1_000_000))
        # In a process of its own: making the profile took more memory than reading it.
        more = ["--publish"] if given.publish else []
        subprocess.run([sys.executable, __file__, *more, str(file)], check=True)


def report(file: Path) -> str:
    """Return a table on the reading of `file`."""
    load = os.getloadavg()[0]
    wall, cpu = time.perf_counter(), time.process_time()
    profile = read_profile(file)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = file.stat().st_size / 1e6
    scale = size / MEGABYTES
    rows = [("CPU time, s", cpu, SECONDS * scale), ("peak memory, MB", peak, PEAK)]
    return "\n".join(
        [
            f"{size:.0f} MB with {len(profile.steps):,} steps in {wall:.1f} s; load average before {load:.1f}.",
            "",
            "| reading a profile | promised for this size | measured | held |",
            "|---|--:|--:|---|",
            *(
                f"| {name} | at most {bound:.1f} | {value:.1f} | {'yes' if value <= bound else '**no**'} |"
                for name, value, bound in rows
            ),
        ]
    )


def made(size: int) -> bytes:
    """Return a serialised profile of at least `size` bytes."""
    names = ["train", "cuLaunchKernel", "ExecutorState::Process", "model/dense/MatMul:MatMul", "volta_s884gemm"]
    names += ["IteratorGetNextOp::DoCompute", "Iterator::Root::Prefetch", "$builtins isinstance"]
    stats = ["step_num", "correlation_id", "id", "tf_op"]
    lines = {
        name: message("XLine")(id=at, name=name.encode()) for at, name in enumerate(("python", "tf", "data"), 1)
    }
    stream = message("XLine")(id=9, name=b"Stream #1(Compute)")
    length, step = 0, 0
    while length < size:
        begin = step * 20_000_000_000
        add(lines["python"], 0, begin, 19_000_000_000, (0, step))
        add(lines["data"], 5, begin, 2_000_000_000)
        add(lines["data"], 6, begin, 1_900_000_000, (2, 7))
        for kernel in range(KERNELS_PER_STEP):
            start, number = begin + 2_000_000_000 + kernel * 30_000_000, step * KERNELS_PER_STEP + kernel
            add(lines["tf"], 2, start, 12_000_000, (2, step))
            add(lines["tf"], 3, start + 1_000_000, 10_000_000)
            add(lines["tf"], 1, start + 2_000_000, 5_000_000, (1, number))
            add(lines["python"], 7, start, 100_000)
            add(stream, 4, start + 9_000_000, 15_000_000, (1, number), (3, b"model/dense/MatMul:MatMul"))
        step += 1
        length = step * KERNELS_PER_STEP * 150 if step % 20 else sum(map(len, serialised(lines, stream)))
    data, kernels = serialised(lines, stream)[:-1], serialised(lines, stream)[-1:]
    planes = [plane(b"/host:CPU", data, names, stats), plane(b"/device:GPU:0", kernels, names, stats)]
    return bytes(message("XSpace")(planes=planes).SerializeToString())


def serialised(lines: dict[str, Any], stream: Any) -> list[bytes]:
    return [line.SerializeToString() for line in (*lines.values(), stream)]


def add(line: Any, name: int, start: int, length: int, *stats: tuple[int, int | bytes]) -> None:
    event = line.events.add(metadata_id=name + 1, offset_ps=start, duration_ps=length)
    for number, value in stats:
        stat = message("XStat")(metadata_id=number + 1)
        if isinstance(value, bytes):
            stat.str_value = value
        else:
            stat.int64_value = value
        event.stats.append(stat.SerializeToString())


def plane(name: bytes, lines: list[bytes], names: list[str], stats: list[str]) -> bytes:
    built = message("XPlane")(name=name, lines=lines)
    for number, text in enumerate(names, 1):
        built.event_metadata.add(key=number).value.name = text.encode()
    for number, text in enumerate(stats, 1):
        built.stat_metadata.add(key=number).value.name = text.encode()
    return bytes(built.SerializeToString())


if __name__ == "__main__":
    main()
