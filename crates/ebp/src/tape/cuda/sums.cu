// Sums in f64 and in a fixed order: no two threads add to the same number.

// Of a warp; every lane gets it.
__device__ __forceinline__ double warp_total(double v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
__device__ __forceinline__ float warp_largest(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

// Of a block of whole warps; every thread gets it.
__device__ double block_total(double v) {
    __shared__ double parts[32];
    v = warp_total(v);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = v;
    __syncthreads();
    double sum = 0.0;
    for (u32 w = 0; w < blockDim.x / 32; w++) sum += parts[w];
    return sum;
}

// The row that this warp works on, of blocks of 256 threads.
__device__ __forceinline__ u64 warp_row() { return (u64)blockIdx.x * 8 + (threadIdx.x >> 5); }

// Σ over columns, a warp per row.
extern "C" __global__ void row_totals(const float *x, float *out, u64 rows, u32 columns) {
    u64 row = warp_row();
    if (row >= rows) return;
    double sum = 0.0;
    for (u32 c = threadIdx.x & 31; c < columns; c += 32) sum += x[row * columns + c];
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) out[row] = (float)sum;
}

// Σ over everything: in `out` if one block does it, else in parts.
extern "C" __global__ void total(const float *x, double *parts, float *out, u64 count) {
    double sum = 0.0;
    GRID(i, count) sum += x[i];
    sum = block_total(sum);
    if (threadIdx.x) return;
    if (gridDim.x == 1) out[0] = (float)sum; else parts[blockIdx.x] = sum;
}

// out[c] = Σ parts[p, c], a warp per column.
extern "C" __global__ void finish_parts(const double *parts, float *out, u32 num_parts, u32 columns) {
    u64 c = warp_row();
    if (c >= columns) return;
    double sum = 0.0;
    for (u32 p = threadIdx.x & 31; p < num_parts; p += 32) sum += parts[(u64)p * columns + c];
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) out[c] = (float)sum;
}

// Σ over rows first..last of the columns of this block: threads x are columns, threads y share the rows.
__device__ bool column_range(const float *x, u64 first, u64 last, u32 columns, u32 &c, double &sum) {
    __shared__ double part[1024];
    c = blockIdx.y * blockDim.x + threadIdx.x;
    sum = 0.0;
    if (c < columns) for (u64 r = first + threadIdx.y; r < last; r += blockDim.y) sum += x[r * columns + c];
    u32 t = threadIdx.y * blockDim.x + threadIdx.x;
    part[t] = sum;
    for (u32 o = blockDim.y / 2; o > 0; o >>= 1) {
        __syncthreads();
        if (threadIdx.y < o) part[t] += part[t + o * blockDim.x];
    }
    sum = part[t];
    return threadIdx.y == 0 && c < columns;
}

// Σ over rows of every column: in `out` if there is one part, else in parts of `rows_per_part` rows.
extern "C" __global__ void column_totals(const float *x, double *parts, float *out, u64 rows, u32 columns,
                                         u64 rows_per_part) {
    u64 first = blockIdx.x * rows_per_part, last = first + rows_per_part < rows ? first + rows_per_part : rows;
    u32 c; double sum;
    if (!column_range(x, first, last, columns, c, sum)) return;
    if (gridDim.x == 1) out[c] = (float)sum; else parts[(u64)blockIdx.x * columns + c] = sum;
}

// Σ over the rows of every set.
extern "C" __global__ void set_totals(const float *x, const u32 *starts, float *out, u32 columns) {
    u32 c; double sum;
    if (column_range(x, starts[blockIdx.x], starts[blockIdx.x + 1], columns, c, sum))
        out[(u64)blockIdx.x * columns + c] = (float)sum;
}

// The row of its set for every element.
extern "C" __global__ void spread_rows(const float *x, const u32 *set, float *out, u64 count, u32 columns) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, columns, row, column);
        out[i] = x[(u64)set[row] * columns + column];
    }
}

// x̂ = (x − m)/√(v + floor), m and 1/√(v + floor) of every column: a block of 32 x 32 threads for 32 columns.
extern "C" __global__ void normalise_columns(const float *x, float *standard, float *mean, float *scale, u64 rows,
                                             u32 columns, float floor) {
    __shared__ double part[32][33];
    u32 c = blockIdx.x * 32 + threadIdx.x;
    double sum = 0.0, squares = 0.0;
    if (c < columns) for (u64 r = threadIdx.y; r < rows; r += 32) sum += x[r * columns + c];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0;
    for (u32 y = 0; y < 32; y++) sum += part[y][threadIdx.x];
    double m = sum / (double)rows;
    __syncthreads();
    if (c < columns) for (u64 r = threadIdx.y; r < rows; r += 32) { double d = x[r * columns + c] - m; squares += d * d; }
    part[threadIdx.y][threadIdx.x] = squares;
    __syncthreads();
    squares = 0.0;
    for (u32 y = 0; y < 32; y++) squares += part[y][threadIdx.x];
    if (c >= columns) return;
    float center = (float)m, factor = (float)(1.0 / sqrt(squares / (double)rows + (double)floor));
    for (u64 r = threadIdx.y; r < rows; r += 32) standard[r * columns + c] = (x[r * columns + c] - center) * factor;
    if (threadIdx.y == 0) { mean[c] = center; scale[c] = factor; }
}

// out = scale (g − mean g − x̂ mean(g x̂)) of every column, as above.
extern "C" __global__ void normalise_columns_backward(const float *standard, const float *scale, const float *g, float *out,
                                                      u64 rows, u32 columns) {
    __shared__ double sums[32][33], along[32][33];
    u32 c = blockIdx.x * 32 + threadIdx.x;
    double sum = 0.0, product = 0.0;
    if (c < columns) for (u64 r = threadIdx.y; r < rows; r += 32) {
        double v = g[r * columns + c];
        sum += v; product += v * standard[r * columns + c];
    }
    sums[threadIdx.y][threadIdx.x] = sum; along[threadIdx.y][threadIdx.x] = product;
    __syncthreads();
    if (c >= columns) return;
    sum = 0.0; product = 0.0;
    for (u32 y = 0; y < 32; y++) { sum += sums[y][threadIdx.x]; product += along[y][threadIdx.x]; }
    float mean = (float)(sum / (double)rows), slope = (float)(product / (double)rows);
    for (u64 r = threadIdx.y; r < rows; r += 32)
        out[r * columns + c] = scale[c] * (g[r * columns + c] - mean - standard[r * columns + c] * slope);
}
