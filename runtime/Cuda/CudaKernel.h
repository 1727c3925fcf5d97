//===- CudaKernel.h - A kernel in a CUDA context ---------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CUDA_CUDAKERNEL_H
#define DITHER_RUNTIME_CUDA_CUDAKERNEL_H

#include "Context.h"
#include "dither/Runtime/Device.h"

namespace dither::runtime::cuda {

/// Loads PTX: the driver compiles it, and what it says of code that it rejects
/// is part of the error. The target was checked by the caller.
llvm::Expected<std::unique_ptr<Kernel>>
loadCudaKernel(std::shared_ptr<Context> context, const KernelImage &image);

} // namespace dither::runtime::cuda

#endif // DITHER_RUNTIME_CUDA_CUDAKERNEL_H
