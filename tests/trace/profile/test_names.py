import pytest

from tflint_gpu.trace.profile.names import (
    Kind,
    Work,
    device_work,
    host_kind,
    is_elementwise,
    is_float64,
    is_gemm,
    is_transpose,
    op_type,
    uses_tensor_cores,
)

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("name", "stats", "kind"),
    [
        ("IteratorGetNextOp::DoCompute", NONE, Kind.INPUT),
        ("IteratorGetNextAsOptional_4:IteratorGetNextAsOptional", NONE, Kind.INPUT),
        ("Iterator::Root::Prefetch::Map", NONE, Kind.ITERATOR),
        ("ExecutorState::Process", NONE, Kind.LAUNCH),
        ("MemcpyH2D", frozenset({"correlation_id"}), Kind.LAUNCH),
        ("void Eigen::internal::EigenMetaKernel<float>", frozenset({"correlation_id"}), Kind.LAUNCH),
        ("EagerExecute", NONE, Kind.EAGER),
        ("EagerLocalExecute: MatMul", NONE, Kind.EAGER),
        ("EagerKernelExecute", NONE, Kind.CONTAINER),
        ("FunctionRun", NONE, Kind.CONTAINER),
        ("train", NONE, Kind.CONTAINER),
        ("train", frozenset({"step_num"}), Kind.MARKER),
        ("training/Adam/mul:Mul", NONE, Kind.OP),
        ("my_step", frozenset({"tf_function_call"}), Kind.FUNCTION),
        ("CpuCompiler::RunBackend", NONE, Kind.COMPILE),
        ("tf.function-graph_building", NONE, Kind.COMPILE),
        ("compile_loss/Compiled/mul:Mul", NONE, Kind.OP),
        ("convolution.1", frozenset({"hlo_op"}), Kind.HLO),
        ("$builtins isinstance", NONE, Kind.NOISE),
        ("MemoryAllocation", NONE, Kind.MEMORY),
        ("convert_to_tensor", NONE, Kind.HOST),
    ],
)
def test_kind_of_a_host_event(name, stats, kind):
    assert host_kind(name, stats) is kind


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("MemcpyH2D", Work.TO_DEVICE),
        ("MEMCPYHtoD", Work.TO_DEVICE),
        ("MemcpyD2H", Work.TO_HOST),
        ("MemcpyD2D", Work.ON_DEVICE),
        ("CopyDeviceToDevice", Work.ON_DEVICE),
        ("__amd_rocclr_copyBuffer.kd", Work.ON_DEVICE),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", Work.COLLECTIVE),
        ("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn", Work.KERNEL),
    ],
)
def test_work_of_a_stream_event(name, work):
    assert device_work(name) is work


@pytest.mark.parametrize(
    "kernel",
    [
        "volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn",
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_wgmma",
    ],
)
def test_tensor_core_kernels_are_known_by_name(kernel):
    assert uses_tensor_cores(kernel)
    assert is_gemm(kernel)


@pytest.mark.parametrize(
    "kernel", ["volta_sgemm_128x64_nn", "cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "loop_convert_fusion"]
)
def test_other_kernels_use_no_tensor_cores(kernel):
    assert not uses_tensor_cores(kernel)


def test_a_conversion_is_no_convolution():
    kernel = "void Eigen::internal::EigenMetaKernel<TensorConversionOp<Eigen::half, float>>"
    assert not is_gemm(kernel)
    assert is_elementwise(kernel)
    assert not is_gemm("loop_convert_fusion")
    assert is_gemm("void implicit_convolve_sgemm<float, 128>")


def test_64_bit_kernels():
    assert is_float64("volta_dgemm_128x64_nn")
    assert is_float64("void Eigen::internal::EigenMetaKernel<TensorMap<Tensor<double, 1, 1, long>>>")
    assert not is_float64("volta_sgemm_128x64_nn")


def test_op_type():
    assert op_type("StatefulPartitionedCall/model/dense/MatMul:MatMul") == "MatMul"
    assert op_type("ExecutorState::Process") is None
    assert op_type("EagerLocalExecute: MatMul") is None


def test_kernels_that_only_turn_dimensions() -> None:
    turning = (
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>",
        "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32, false>",
        "input_transpose_fusion_3",
        "wrapped_transpose",
    )
    assert all(is_transpose(kernel) for kernel in turning)
    assert not is_transpose("sm80_xmma_fprop_implicit_gemm_f16f16_nhwckrsc_nhwc_tilesize128x128")
    assert not is_transpose("void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_transpose>")
    assert not is_transpose("conv2d_transposed_grad")
