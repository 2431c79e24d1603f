"""What an event's name says about it. Names differ between TensorFlow versions, vendors and backends."""

from __future__ import annotations

import enum
import functools
import re


class Kind(str, enum.Enum):
    """What a host event is to the breakdown of a step; a `str` because those hash fast."""

    INPUT = "waits for the input pipeline"
    ITERATOR = "runs a stage of a tf.data pipeline"
    LAUNCH = "prepares or starts device work"
    CONTAINER = "only encloses other events"
    MARKER = "marks a step"
    FUNCTION = "calls a tf.function"
    OP = "runs an op"
    HLO = "runs part of an XLA program on the CPU"
    EAGER = "runs an op or function from Python"
    CAPTURED = "runs a function of a tf.data stage"
    COMPILE = "compiles"
    MEMORY = "tells how much memory an allocator has handed out"
    HOST = "other work of the host"
    NOISE = "bookkeeping of the profiler or the allocator"


#: ``scope/name:Type`` as the executor names ops; a C++ name like ``ExecutorState::Process`` is none.
_OP = re.compile(r"^[^:]+:(?P<type>_?[A-Z][A-Za-z0-9_]*)$")
_CONTAINER = re.compile(
    r"^(EagerExecute|EagerLocalExecute|EagerKernelExecute|EagerClusterFunction|FunctionRun|KernelAndDevice|TFE_Py_|"
    r"PjitFunction|BlockUntilReady|__inference_|ExecutorState::ProcessAsync|ExecutorDoneCallback|(train|test|TraceContext)[^/]*$)"
)
_COMPILE = re.compile(
    r"^[^/]*(Compil|backend_compile|BuildExecutable|Codegen|HLO passes|layout-assignment|ThunkEmitter|RunBackend|"
    r"graph_building)"
)
_NOISE = re.compile(r"^(\$|end: |ThreadpoolListener::|ExecutorPropagateOutputs|RecordUsage|Wait for )")
_MEMORY = ("MemoryAllocation", "MemoryDeallocation")
_HOST_LAUNCH = re.compile(r"^(ExecutorState::Process$|GpuExecutable::ExecuteThunks|cu[A-Z]\w+Launch|hip\w*Launch)")

#: Op types that only call others, or hand tensors on: no work of their own.
CALLS = frozenset(
    {"StatefulPartitionedCall", "PartitionedCall", "RemoteCall", "While", "StatelessWhile", "If", "StatelessIf"}
    | {
        "Case",
        "XlaLaunch",
        "XlaRun",
        "_XlaRun",
        "_Arg",
        "_Retval",
        "_Send",
        "_Recv",
        "_HostSend",
        "_HostRecv",
        "NoOp",
    }
)
PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_COLLECTIVE_OP = re.compile(r"^Collective(Reduce|Gather|Bcast|AllToAll)")


@functools.cache
def op_type(name: str) -> str | None:
    """Return the op type of an executor event (``dense/MatMul:MatMul`` -> ``MatMul``), None for others."""
    found = _OP.match(name)
    return found["type"] if found else None


@functools.cache
def is_collective(name: str) -> bool:
    """Say whether an executor event is an op in which workers exchange tensors; it lasts until all have come."""
    return bool(_COLLECTIVE_OP.match(op_type(name) or ""))


def host_kind(name: str, stats: frozenset[str]) -> Kind:
    """Classify a host event by its `name` and the names of its `stats`."""
    if _NOISE.match(name):
        return Kind.NOISE
    if name.startswith(_MEMORY):
        return Kind.MEMORY
    if name.startswith("IteratorGetNext"):
        return Kind.INPUT
    if name.startswith("Iterator::"):
        return Kind.ITERATOR
    if name.startswith("InstantiatedCapturedFunction::"):
        return Kind.CAPTURED
    if _COMPILE.search(name):
        return Kind.COMPILE
    if name.startswith(("EagerExecute", "EagerLocalExecute: ")):
        return Kind.EAGER
    if "step_num" in stats:
        return Kind.MARKER
    if "tf_function_call" in stats:
        return Kind.FUNCTION
    if "correlation_id" in stats or _HOST_LAUNCH.match(name):
        return Kind.LAUNCH
    if _CONTAINER.match(name):
        return Kind.CONTAINER
    if "hlo_op" in stats or name.startswith("CpuExecutable::Execute"):
        return Kind.HLO
    return Kind.OP if op_type(name) else Kind.HOST


class Work(enum.Enum):
    """What an event on a device stream is."""

    KERNEL = "device_compute"
    COLLECTIVE = "collectives"
    TO_HOST = "device_to_host"
    TO_DEVICE = "host_to_device"
    ON_DEVICE = "device_to_device"


_COPIES = (
    (re.compile(r"memcpy_?(h2d|htod|hosttodevice)|CopyHostToDevice", re.I), Work.TO_DEVICE),
    (re.compile(r"memcpy_?(d2h|dtoh|devicetohost)|CopyDeviceToHost", re.I), Work.TO_HOST),
    (re.compile(r"memcpy|CopyDeviceToDevice|rocclr_copyBuffer", re.I), Work.ON_DEVICE),
)


@functools.cache
def device_work(name: str) -> Work:
    """Classify an event of a device stream: CUPTI writes ``MemcpyH2D``, other tracers ``MemcpyHToD`` and more."""
    for pattern, work in _COPIES:
        if pattern.search(name):
            return work
    return Work.COLLECTIVE if re.match(r"(nccl|rccl)", name, re.I) else Work.KERNEL


#: Kernels that use tensor cores (NVIDIA) by the names that cuBLAS, cuDNN, CUTLASS, Triton and XLA give them.
_TENSOR_CORE = re.compile(
    r"16816|1688|884|hmma|imma|gmma|wgmma|xmma|tensorop|nvjet|cutlass(?!.*simt).*(h|bf|tf32)|gemm_fusion_dot|cudnn_.*sm(80|90)",
    re.I,
)
_GEMM = re.compile(
    r"gemm|matmul|conv(?!er)|cutlass|nvjet|winograd|implicit|_dgrad|_wgrad|_fprop|Cijk_|fmha|flash|lstm|rnn", re.I
)
_ELEMENTWISE = re.compile(
    r"EigenMetaKernel|elementwise|^(loop|wrapped|fusion|input)(_|$)|_fusion|BiasN|Cast|DropOut|Relu|ApplyAdam",
    re.I,
)
_FUSED = re.compile(r"^(loop|wrapped|input|fusion)(_|\.|$)|fusion", re.I)
_TRANSPOSE = re.compile(
    r"transpose(?!d)|nchwToNhwc|nhwcToNchw|SwapDimension|ShuffleInTensor3|tensorTransformGeneric", re.I
)
_FLOAT64 = re.compile(r"dgemm|_d884|d884|\bdouble\b|_f64|f64f64|GpuLaunch.*double|Df64|DgemmKernel", re.I)


@functools.cache
def uses_tensor_cores(kernel: str) -> bool:
    """Say whether the name of `kernel` is one of the tensor-core kernels."""
    return bool(_TENSOR_CORE.search(kernel))


@functools.cache
def is_gemm(kernel: str) -> bool:
    """Say whether `kernel` is a matrix product, a convolution or a fused recurrent or attention kernel."""
    return bool(_GEMM.search(kernel)) and "EigenMetaKernel" not in kernel


@functools.cache
def is_elementwise(kernel: str) -> bool:
    """Say whether `kernel` maps elements one by one; XLA's loop fusions count."""
    return bool(_ELEMENTWISE.search(kernel)) and not is_gemm(kernel)


@functools.cache
def is_transpose(kernel: str) -> bool:
    """Say whether `kernel` only changes the order of dimensions in memory."""
    return bool(_TRANSPOSE.search(kernel)) and not is_gemm(kernel)


@functools.cache
def is_fused(kernel: str) -> bool:
    """Say whether XLA made `kernel` of several ops."""
    return bool(_FUSED.search(kernel))


@functools.cache
def is_float64(kernel: str) -> bool:
    """Say whether `kernel` computes in 64-bit floating point."""
    return bool(_FLOAT64.search(kernel))
