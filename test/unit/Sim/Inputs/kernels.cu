// CUDA C++ as others write it, which NvccTest.cpp compiles to PTX and runs in the simulator. Blocks are of 256 threads.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#include <cuda/barrier>
#include <cuda/ptx>
#endif

extern "C" __global__ void vector_add(const float *a, const float *b, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    sum[i] = a[i] + b[i];
}

/// Tiles of 32 x 32 of a matrix of any shape, eight rows at a time.
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  for (int i = 0; i < 32; i += 8)
    if (row + i < rows && column < columns)
      tile[y + i][x] = in[(row + i) * columns + column];
  __syncthreads();
  column = blockIdx.x * 32 + y, row = blockIdx.y * 32 + x;
  for (int i = 0; i < 32; i += 8)
    if (column + i < columns && row < rows)
      out[(column + i) * rows + row] = tile[x][y + i];
}

/// Sums of 32 floats by a butterfly, and of 32 integers.
extern "C" __global__ void warp_sums(const float *in, const int *integers, float *out, int *totals) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  for (int step = 16; step; step /= 2)
    x += __shfl_xor_sync(0xFFFFFFFF, x, step);
  int total = __reduce_add_sync(0xFFFFFFFF, integers[i]);
  if (i % 32 == 0) {
    out[i / 32] = x;
    totals[i / 32] = total;
  }
}

/// Sums of 256 floats: of a grid-stride loop, then by a tree in dynamic shared memory.
extern "C" __global__ void block_sums(const float *in, float *out, int n) {
  extern __shared__ float partial[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step; step /= 2) {
    if (threadIdx.x < step)
      partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

/// Sums of two neighbours in a ring of 1024 floats. Two rings are on their way while one is summed up; what the last one
/// lacks is zeros.
extern "C" __global__ void neighbour_sums(const float *in, float *out, int n) {
  __shared__ __align__(16) float rings[3][1024];
  int at = threadIdx.x * 4;
  auto begin = [&](int i) { return (blockIdx.x + i * gridDim.x) * 1024; };
  auto fetch = [&](int i) {
    int from = begin(i) + at, bytes = min(max(n - from, 0), 4) * 4;
    if (begin(i) < n)
      __pipeline_memcpy_async(&rings[i % 3][at], in + from, 16, 16 - bytes);
    __pipeline_commit();
  };
  fetch(0);
  fetch(1);
  for (int i = 0; begin(i) < n; ++i) {
    __pipeline_wait_prior(1);
    __syncthreads();
    fetch(i + 2);
    for (int j = at; j < at + 4; ++j)
      if (begin(i) + j < n)
        out[begin(i) + j] = rings[i % 3][j] + rings[i % 3][(j + 1) % 1024];
  }
}

#if __CUDA_ARCH__ >= 900
/// Doubles of 1024 floats at a time, by bulk copies in both directions. One thread copies the next 1024 while all are at
/// work on these.
extern "C" __global__ void bulk_doubles(const float *in, float *out, int rows) {
  namespace ptx = cuda::ptx;
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ __align__(128) float rows_in[2][1024], rows_out[2][1024];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier full[2];
  auto row = [&](int i) { return blockIdx.x + i * gridDim.x; };
  auto fetch = [&](int i) {
    if (row(i) < rows)
      cuda::device::memcpy_async_tx(rows_in[i % 2], in + row(i) * 1024, cuda::aligned_size_t<16>(4096), full[i % 2]);
  };
  if (threadIdx.x == 0) {
    init(&full[0], blockDim.x);
    init(&full[1], blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    fetch(0);
  for (int i = 0; row(i) < rows; ++i) {
    if (threadIdx.x == 0)
      fetch(i + 1);
    Barrier::arrival_token token =
        threadIdx.x == 0 ? cuda::device::barrier_arrive_tx(full[i % 2], 1, 4096) : full[i % 2].arrive();
    full[i % 2].wait(std::move(token));
    for (int j = threadIdx.x; j < 1024; j += blockDim.x)
      rows_out[i % 2][j] = 2 * rows_in[i % 2][j];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + row(i) * 1024, rows_out[i % 2], 4096);
      ptx::cp_async_bulk_commit_group();
      // The stage that the next round writes was read.
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}
#endif

/// Counts of bytes: of a block in shared memory, then added to all.
extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[in[i]], 1u);
  __syncthreads();
  if (own[threadIdx.x])
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

/// MXFP8: a thread for a block of 32 values.
extern "C" __global__ void quantize_mxfp8(const __nv_bfloat16 *in, unsigned char *codes, unsigned char *scales,
                                          int blocks) {
  int block = blockIdx.x * blockDim.x + threadIdx.x;
  if (block >= blocks)
    return;
  const __nv_bfloat162 *x = reinterpret_cast<const __nv_bfloat162 *>(in) + block * 16;
  float amax = 0;
  for (int i = 0; i < 16; ++i) {
    float2 pair = __bfloat1622float2(x[i]);
    amax = fmaxf(amax, fmaxf(fabsf(pair.x), fabsf(pair.y)));
  }
  __nv_fp8_storage_t scale = __nv_cvt_float_to_e8m0(amax / 448.0f, __NV_SATFINITE, cudaRoundPosInf);
  float inverse = __uint_as_float(unsigned(254 - scale) << 23);
  scales[block] = scale;
  auto *out = reinterpret_cast<__nv_fp8x2_storage_t *>(codes) + block * 16;
  for (int i = 0; i < 16; ++i) {
    float2 pair = __bfloat1622float2(x[i]);
    out[i] = __nv_cvt_float2_to_fp8x2({pair.x * inverse, pair.y * inverse}, __NV_SATFINITE, __NV_E4M3);
  }
}

/// NVFP4: 16 values of a block lie in 8 lanes.
extern "C" __global__ void quantize_nvfp4(const __nv_bfloat16 *in, const float *tensorAmax, unsigned char *codes,
                                          __nv_fp8_e4m3 *scales, int pairs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 x = i < pairs ? __bfloat1622float2(reinterpret_cast<const __nv_bfloat162 *>(in)[i]) : float2{0, 0};
  float amax = fmaxf(fabsf(x.x), fabsf(x.y));
  for (int step = 1; step < 8; step *= 2)
    amax = fmaxf(amax, __shfl_xor_sync(0xFFFFFFFF, amax, step));
  if (i >= pairs)
    return;
  float encode = 2688.0f / *tensorAmax;
  __nv_fp8_e4m3 scale(amax * encode / 6.0f);
  float value = float(scale);
  float inverse = value ? encode / value : 0.0f;
  if (i % 8 == 0)
    scales[i / 8] = scale;
  codes[i] = __nv_cvt_float2_to_fp4x2({x.x * inverse, x.y * inverse}, __NV_E2M1, cudaRoundNearest);
}

/// Every code back to half precision, and halves to codes: conversions of all headers.
extern "C" __global__ void widen(__half *e4m3, __half *e5m2, __half *e2m1) {
  int i = threadIdx.x;
  e4m3[i] = __half(__nv_cvt_fp8_to_halfraw(i, __NV_E4M3));
  e5m2[i] = __half(__nv_cvt_fp8_to_halfraw(i, __NV_E5M2));
  e2m1[i] = __half(__nv_cvt_fp4_to_halfraw(i & 15, __NV_E2M1));
}
