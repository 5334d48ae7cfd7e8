// Spectral norms, a block of 512 threads per operator. sums.cu stands before this file.
//
// An operator is [W, C], two blocks of the flat parameters side by side; the second may have no columns. Of each
// the table holds rows, first left number, first right number, start and columns of W, start and columns of C.
struct Operator { u32 rows, first_row, first_column, start, columns, more_start, more_columns; };

__device__ __forceinline__ Operator operator_of(const u32 *table) {
    const u32 *own = table + 7 * blockIdx.x;
    return {own[0], own[1], own[2], own[3], own[4], own[5], own[6]};
}

// Where entry (row, column) lies.
__device__ __forceinline__ u64 entry(const Operator &o, u32 row, u32 column) {
    return column < o.columns ? o.start + (u64)row * o.columns + column
                              : o.more_start + (u64)row * o.more_columns + (column - o.columns);
}

// Divides a vector by its length, which comes back; one below `floor` counts as `floor`.
__device__ double to_unit(double *vector, u32 length, double floor) {
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < length; i += blockDim.x) sum += vector[i] * vector[i];
    double norm = sqrt(block_total(sum));
    for (u32 i = threadIdx.x; i < length; i += blockDim.x) vector[i] /= norm > floor ? norm : floor;
    __syncthreads();
    return norm;
}

// v = Wᵀu/‖Wᵀu‖ and, if it `moves`, u ← Wv/‖Wv‖; W̄ = W/σ. us, vs and products are room in f64: all left vectors,
// all right ones, all left ones again. `out` holds a copy of the parameters before.
extern "C" __global__ void spectral_norm(const float *weights, const float *left, const u32 *table, double *us, double *vs,
                                         double *products, float *out, float *out_left, float *out_right, float *norms,
                                         int moves, float floor) {
    Operator o = operator_of(table);
    u32 columns = o.columns + o.more_columns;
    double *u = us + o.first_row, *v = vs + o.first_column, *product = products + o.first_row;
    for (u32 r = threadIdx.x; r < o.rows; r += blockDim.x) u[r] = left[o.first_row + r];
    __syncthreads();
    to_unit(u, o.rows, floor);
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) {
        double sum = 0.0;
        for (u32 r = 0; r < o.rows; r++) sum += u[r] * weights[entry(o, r, c)];
        v[c] = sum;
    }
    __syncthreads();
    // uᵀ W v = ‖Wᵀ u‖ while u stays.
    double norm = to_unit(v, columns, floor);
    if (moves) {
        for (u32 r = threadIdx.x >> 5; r < o.rows; r += blockDim.x >> 5) {
            double sum = 0.0;
            for (u32 c = threadIdx.x & 31; c < columns; c += 32) sum += weights[entry(o, r, c)] * v[c];
            sum = warp_total(sum);
            if ((threadIdx.x & 31) == 0) product[r] = sum;
        }
        __syncthreads();
        norm = to_unit(product, o.rows, floor);
        // A zero operator says nothing about directions: u stays.
        if (norm > floor) u = product;
    }
    float divisor = norm > floor ? (float)norm : 1.0f;
    for (u32 r = threadIdx.x; r < o.rows; r += blockDim.x) out_left[o.first_row + r] = (float)u[r];
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) out_right[o.first_column + c] = (float)v[c];
    for (u64 i = threadIdx.x; i < (u64)o.rows * o.columns; i += blockDim.x) out[o.start + i] = weights[o.start + i] / divisor;
    for (u64 i = threadIdx.x; i < (u64)o.rows * o.more_columns; i += blockDim.x)
        out[o.more_start + i] = weights[o.more_start + i] / divisor;
    if (threadIdx.x == 0) norms[blockIdx.x] = divisor;
}

// ∂W = (g − ⟨g, W̄⟩ u vᵀ)/σ; `out` holds a copy of g before.
extern "C" __global__ void spectral_norm_backward(const float *g, const float *normalised, const float *left,
                                                  const float *right, const float *norms, const u32 *table, float *out) {
    Operator o = operator_of(table);
    u32 columns = o.columns + o.more_columns;
    double alignment = 0.0;
    for (u64 i = threadIdx.x; i < (u64)o.rows * o.columns; i += blockDim.x)
        alignment += (double)g[o.start + i] * normalised[o.start + i];
    for (u64 i = threadIdx.x; i < (u64)o.rows * o.more_columns; i += blockDim.x)
        alignment += (double)g[o.more_start + i] * normalised[o.more_start + i];
    alignment = block_total(alignment);
    double norm = norms[blockIdx.x];
    for (u32 r = threadIdx.x >> 5; r < o.rows; r += blockDim.x >> 5) {
        double along = alignment * left[o.first_row + r];
        for (u32 c = threadIdx.x & 31; c < columns; c += 32) {
            u64 at = entry(o, r, c);
            out[at] = (float)((g[at] - along * right[o.first_column + c]) / norm);
        }
    }
}
