//===- CudaApiTest.cpp - Our declarations against NVIDIA's cuda.h ---------===//
//
// Built where cuda.h is found: the fake driver shares our declarations and
// would share a mistake in them.
//
//===----------------------------------------------------------------------===//

#include "../../../runtime/Cuda/CudaApi.h"

#include <cuda.h>
#include <gtest/gtest.h>
#include <type_traits>

namespace dither::runtime::cuda {
#define DITHER_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                         \
  using Type_##MEMBER = CUresult PARAMETERS;
#include "../../../runtime/Cuda/Symbols.def"
} // namespace dither::runtime::cuda

namespace {

namespace ours = dither::runtime::cuda;

/// The same to the calling convention: enumerations are ints, and all pointers
/// are alike.
template <typename A, typename B>
constexpr bool sameInAbi =
    std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
    !std::is_floating_point_v<A> && !std::is_floating_point_v<B>;

template <typename A, typename B> struct SameFunction;
template <typename R, typename... A, typename S, typename... B>
struct SameFunction<R(A...), S(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return sameInAbi<R, S> && (sameInAbi<A, B> && ...);
    else
      return false;
  }();
};

// cuda.h declares cuMemAlloc as cuMemAlloc_v2, so each of our symbols must be
// one that it declares.
TEST(CudaApi, FunctionsAreThoseOfCudaH) {
#define DITHER_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                         \
  EXPECT_TRUE((SameFunction<ours::Type_##MEMBER, decltype(::SYMBOL)>::value))  \
      << #SYMBOL;
#include "../../../runtime/Cuda/Symbols.def"
}

TEST(CudaApi, NumbersAreThoseOfCudaH) {
#define SAME(NAME) EXPECT_EQ(int(ours::NAME), int(::NAME)) << #NAME
  SAME(CUDA_SUCCESS);
  SAME(CUDA_ERROR_INVALID_VALUE);
  SAME(CUDA_ERROR_OUT_OF_MEMORY);
  SAME(CUDA_ERROR_NOT_INITIALIZED);
  SAME(CUDA_ERROR_DEINITIALIZED);
  SAME(CUDA_ERROR_NO_DEVICE);
  SAME(CUDA_ERROR_INVALID_DEVICE);
  SAME(CUDA_ERROR_INVALID_CONTEXT);
  SAME(CUDA_ERROR_INVALID_PTX);
  SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  SAME(CUDA_ERROR_INVALID_HANDLE);
  SAME(CUDA_ERROR_NOT_FOUND);
  SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
  SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  SAME(CUDA_ERROR_LAUNCH_FAILED);
  SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
  SAME(CU_JIT_ERROR_LOG_BUFFER);
  SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}

} // namespace
