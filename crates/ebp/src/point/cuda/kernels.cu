// What is not a matrix product: activations, sums over sets, pools.
//
// Rows are elements; `set` names each row's set. Sums run in a fixed order, so results do not
// change from run to run. common.cu stands before this file.

// Sums a number per thread over a block of 256; the first thread gets it.
__device__ __forceinline__ void sum_block(double value, double *out) {
    __shared__ double part[256];
    part[threadIdx.x] = value;
    for (u32 o = 128; o > 0; o >>= 1) { __syncthreads(); if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o]; }
    if (threadIdx.x == 0) *out = part[0];
}

// The nearest bf16, ties to even; NaN stays NaN.
__device__ __forceinline__ unsigned short bf16(float v) {
    u32 bits = __float_as_uint(v);
    return v != v ? 0x7fffu : (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Four numbers a thread, at once where addresses allow.
extern "C" __global__ void to_bf16(const float *in, unsigned short *out, u64 count) {
    bool is_even = ((u64)in & 15) == 0 && ((u64)out & 7) == 0;
    GRID(four, (count + 3) / 4) {
        if (is_even && 4 * four + 4 <= count) {
            float4 v = ((const float4 *)in)[four];
            ((ushort4 *)out)[four] = make_ushort4(bf16(v.x), bf16(v.y), bf16(v.z), bf16(v.w));
        } else {
            for (u64 i = 4 * four; i < 4 * four + 4 && i < count; i++) out[i] = bf16(in[i]);
        }
    }
}

// A number as the sum of two that tensor cores hold exactly: hi has 10 bits of mantissa, lo the rest.
__device__ __forceinline__ void split(float v, float &hi, float &lo) {
#if __CUDA_ARCH__ >= 800
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
#else
    u32 bits = __float_as_uint(v) & 0xffffe000u;   // not called: older chips have no TF32
#endif
    hi = __uint_as_float(bits);
    lo = v - hi;
}
// Writes four columns of a row; split rows are [hi, lo, hi] and three times as long.
__device__ __forceinline__ void put(float *out, u64 row, u32 col4, u32 n, float4 a, int is_split) {
    if (!is_split) { ((float4 *)(out + row * n))[col4] = a; return; }
    float4 hi, lo;
    split(a.x, hi.x, lo.x); split(a.y, hi.y, lo.y); split(a.z, hi.z, lo.z); split(a.w, hi.w, lo.w);
    float4 *to = (float4 *)(out + row * 3 * n) + col4;
    to[0] = hi; to[n >> 2] = lo; to[n >> 1] = hi;
}

// Weights [n, k] → [hi, hi, lo], which meet [hi, lo, hi] of the other factor: all of the product but
// lo · lo, which is below a float's last bit. k is a multiple of four.
extern "C" __global__ void split_weights(const float *w, float *out, u32 n, u32 k) {
    GRID(i, (u64)n * k) {
        u64 row; u32 col;
        place(i, k, row, col);
        float hi, lo;
        split(w[i], hi, lo);
        float *to = out + row * 3 * k + col;
        to[0] = hi; to[k] = hi; to[2 * k] = lo;
    }
}

// z = product + shift of the row's set; writes a = σ(z) to `out` (which may be z), and σ′, σ″ where
// asked. Four columns a thread where n is a multiple of four; only then may rows be split.
extern "C" __global__ void activate(const float *z, float *out, const float *shift, const u32 *set, float *slope,
                                    float *curvature, u64 rows, u32 n, int kind, float leak, int is_split) {
    if ((n & 3) == 0) {
        u32 n4 = n >> 2;
        GRID(i, rows * n4) {
            u64 row; u32 col;
            place(i, n4, row, col);
            float4 v = ((const float4 *)z)[i];
            float4 b = ((const float4 *)(shift + (set ? (u64)set[row] * n : 0)))[col];
            float4 a, s, c;
            activation(kind, leak, v.x + b.x, a.x, s.x, c.x);
            activation(kind, leak, v.y + b.y, a.y, s.y, c.y);
            activation(kind, leak, v.z + b.z, a.z, s.z, c.z);
            activation(kind, leak, v.w + b.w, a.w, s.w, c.w);
            put(out, row, col, n, a, is_split);
            if (slope) ((float4 *)slope)[i] = s;
            if (curvature) ((float4 *)curvature)[i] = c;
        }
    } else {
        GRID(i, rows * n) {
            u64 row; u32 col;
            place(i, n, row, col);
            float a, s, c;
            activation(kind, leak, z[i] + shift[(set ? (u64)set[row] * n : 0) + col], a, s, c);
            out[i] = a;
            if (slope) slope[i] = s;
            if (curvature) curvature[i] = c;
        }
    }
}

// The first layer: z = W x + shift for few inputs d, then as `activate`. W is [n, d].
extern "C" __global__ void first_layer(const float *x, const float *w, const float *shift, const u32 *set,
                                       float *out, float *slope, float *curvature,
                                       u64 rows, u32 d, u32 n, int kind, float leak, int is_split) {
    if ((n & 3) == 0) {
        u32 n4 = n >> 2;
        GRID(i, rows * n4) {
            u64 row; u32 col;
            place(i, n4, row, col);
            float4 z = ((const float4 *)(shift + (set ? (u64)set[row] * n : 0)))[col];
            const float *v = w + (u64)col * 4 * d;
            for (u32 k = 0; k < d; k++) {
                float c = x[row * d + k];
                z.x = fmaf(v[k], c, z.x); z.y = fmaf(v[d + k], c, z.y);
                z.z = fmaf(v[2 * d + k], c, z.z); z.w = fmaf(v[3 * d + k], c, z.w);
            }
            float4 a, s, c;
            activation(kind, leak, z.x, a.x, s.x, c.x);
            activation(kind, leak, z.y, a.y, s.y, c.y);
            activation(kind, leak, z.z, a.z, s.z, c.z);
            activation(kind, leak, z.w, a.w, s.w, c.w);
            put(out, row, col, n, a, is_split);
            if (slope) ((float4 *)slope)[i] = s;
            if (curvature) ((float4 *)curvature)[i] = c;
        }
        return;
    }
    GRID(i, rows * n) {
        u64 row; u32 col;
        place(i, n, row, col);
        float z = shift[(set ? (u64)set[row] * n : 0) + col];
        for (u32 k = 0; k < d; k++) z = fmaf(w[(u64)col * d + k], x[row * d + k], z);
        float a, s, c;
        activation(kind, leak, z, a, s, c);
        out[i] = a;
        if (slope) slope[i] = s;
        if (curvature) curvature[i] = c;
    }
}

// One output: f = <w, a> + b, a warp per row.
extern "C" __global__ void scalar_output(const float *a, const float *w, const float *shift, const u32 *set,
                                         float *out, u64 rows, u32 n) {
    u64 row = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; u32 lane = threadIdx.x & 31;
    if (row >= rows) return;
    float sum = 0.0f;
    for (u32 k = lane; k < n; k += 32) sum = fmaf(a[row * n + k], w[k], sum);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) out[row] = sum + shift[set ? set[row] : 0];
}

// g[r, k] = cotangent[r] w[k] slope[r, k]; a null cotangent is all ones.
extern "C" __global__ void scalar_output_backward(const float *cotangent, const float *w, const float *slope,
                                                  float *g, u64 rows, u32 n) {
    if ((n & 3) == 0 && ((u64)w & 15) == 0) {
        u32 n4 = n >> 2;
        GRID(i, rows * n4) {
            u64 row; u32 col;
            place(i, n4, row, col);
            float c = cotangent ? cotangent[row] : 1.0f;
            float4 v = ((const float4 *)w)[col], s = ((const float4 *)slope)[i];
            ((float4 *)g)[i] = make_float4(c * v.x * s.x, c * v.y * s.y, c * v.z * s.z, c * v.w * s.w);
        }
        return;
    }
    GRID(i, rows * n) {
        u64 row; u32 col;
        place(i, n, row, col);
        float c = cotangent ? cotangent[row] : 1.0f;
        g[i] = c * w[col] * slope[i];
    }
}

// out = a b, entry by entry; out may be a. Four numbers a thread, at once where addresses allow.
extern "C" __global__ void product(float *out, const float *a, const float *b, u64 count) {
    if ((count & 3) == 0 && (((u64)out | (u64)a | (u64)b) & 15) == 0) {
        GRID(i, count / 4) {
            float4 x = ((const float4 *)a)[i], y = ((const float4 *)b)[i];
            ((float4 *)out)[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
        }
    } else {
        GRID(i, count) out[i] = a[i] * b[i];
    }
}

// out[r, :] = n columns of in [rows, width], from `first` on.
extern "C" __global__ void take_columns(const float *in, float *out, u64 rows, u32 width, u32 first, u32 n) {
    GRID(i, rows * n) {
        u64 row; u32 col;
        place(i, n, row, col);
        out[i] = in[row * width + first + col];
    }
}

// out [rows, width] = [in [rows, n], zeros]
extern "C" __global__ void pad_columns(const float *in, float *out, u64 rows, u32 n, u32 width) {
    GRID(i, rows * width) {
        u64 row; u32 col;
        place(i, width, row, col);
        out[i] = col < n ? in[row * n + col] : 0.0f;
    }
}

// dx[r, k] = Σ_j g[r, j] W[j, k] for few inputs d, a warp per row.
extern "C" __global__ void first_layer_backward(const float *g, const float *w, float *dx, u64 rows, u32 d, u32 n) {
    u64 row = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; u32 lane = threadIdx.x & 31;
    if (row >= rows) return;
    for (u32 k = 0; k < d; k++) {
        float sum = 0.0f;
        for (u32 j = lane; j < n; j += 32) sum = fmaf(g[row * n + j], w[(u64)j * d + k], sum);
        for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
        if (lane == 0) dx[row * d + k] = sum;
    }
}

// Backward through σ of the pair (value, tangent):
//   p: cotangent of the tangent's activation,  g: of the value's activation
//   q = p σ′,   r = g σ′ + p σ″ ż.  In place: p ← q, g ← r.
extern "C" __global__ void second_order(float *g, float *p, const float *slope, const float *curvature,
                                        const float *tangent, u64 count) {
    GRID(i, count) {
        float s = slope[i], t = p[i];
        g[i] = g[i] * s + t * curvature[i] * tangent[i];
        p[i] = t * s;
    }
}

// out[first + s, :] += Σ rows of set s of g, in f64. A block per set, part of its rows (z) and as many columns as it
// is wide; sums of parts, where there are several, are `[parts, sets, n]` and `add_parts` adds them.
extern "C" __global__ void set_sums(const float *g, const u32 *starts, double *parts, float *out, u32 first, u32 n) {
    __shared__ double part[1024];
    u32 s = blockIdx.x, col = blockIdx.y * blockDim.x + threadIdx.x, at = threadIdx.y * blockDim.x + threadIdx.x;
    u32 end = starts[s + 1], rows = (end - starts[s] + gridDim.z - 1) / gridDim.z, from = starts[s] + blockIdx.z * rows;
    u32 to = from + rows < end ? from + rows : end;
    double sum = 0.0;
    if (col < n)
        for (u32 r = from + threadIdx.y; r < to; r += blockDim.y) sum += (double)g[(u64)r * n + col];
    part[at] = sum;
    for (u32 o = blockDim.y / 2; o > 0; o >>= 1) {
        __syncthreads();
        if (threadIdx.y < o) part[at] += part[at + o * blockDim.x];
    }
    if (threadIdx.y > 0 || col >= n) return;
    if (gridDim.z == 1) out[(u64)(first + s) * n + col] += (float)part[at];
    else parts[((u64)blockIdx.z * gridDim.x + s) * n + col] = part[at];
}

// out[i] += Σ parts[p, i]
extern "C" __global__ void add_parts(const double *parts, float *out, u32 num_parts, u64 count) {
    GRID(i, count) {
        double sum = 0.0;
        for (u32 p = 0; p < num_parts; p++) sum += parts[p * count + i];
        out[i] += (float)sum;
    }
}

// out[set] += ‖a‖² over its rows
extern "C" __global__ void set_squares(const float *a, const u32 *starts, float *out, u32 first, u32 d) {
    __shared__ double part[256];
    u32 s = blockIdx.x;
    double sum = 0.0;
    u64 end = (u64)starts[s + 1] * d;
    for (u64 i = (u64)starts[s] * d + threadIdx.x; i < end; i += 256) sum += (double)(a[i] * a[i]);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[first + s] += (float)part[0];
}

// ⟨v, v⟩, ⟨score, g⟩ and ⟨v, g⟩ of every set and step, added to three arrays one behind the other.
extern "C" __global__ void langevin_dots(const float *v, const float *g, const float *score, u64 length,
                                         const u32 *starts, float *out, u64 out_length, u32 first, u32 steps, u32 d) {
    v += blockIdx.y * length; g += blockIdx.y * length;
    __shared__ double part[3][256];
    u32 s = blockIdx.x, here = threadIdx.x;
    double sums[3] = {0.0, 0.0, 0.0};
    u64 end = (u64)starts[s + 1] * d;
    for (u64 i = (u64)starts[s] * d + here; i < end; i += 256) {
        float vi = v[i], gi = g[i];
        sums[0] += (double)(vi * vi);
        sums[1] += (double)(score[i] * gi);
        sums[2] += (double)(vi * gi);
    }
    for (int k = 0; k < 3; k++) part[k][here] = sums[k];
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (here < o) for (int k = 0; k < 3; k++) part[k][here] += part[k][here + o];
        __syncthreads();
    }
    if (here < 3) out[here * out_length + (u64)(first + s) * steps + blockIdx.y] += (float)part[here][0];
}

// out[c] += Σ_r in[r, c], in f64
extern "C" __global__ void column_sums(const float *in, float *out, u32 rows, u32 n) {
    GRID(c, n) {
        double sum = 0.0;
        for (u32 r = 0; r < rows; r++) sum += (double)in[(u64)r * n + c];
        out[c] += (float)sum;
    }
}

// out[s, :] = in[s, :] / size of set s; out may be in.
extern "C" __global__ void over_sizes(const float *in, const u32 *starts, float *out, u32 sets, u32 n) {
    GRID(i, (u64)sets * n) {
        u32 s = (u32)(i / n);
        out[i] = in[i] / (float)(starts[s + 1] - starts[s]);
    }
}

// out[s] = factor / (sets · size of set s)
extern "C" __global__ void set_shares(const u32 *starts, float *out, u32 sets, float factor) {
    GRID(s, sets) out[s] = factor / (float)((u64)sets * (starts[s + 1] - starts[s]));
}

// The set of each row; one block per set.
extern "C" __global__ void name_sets(const u32 *starts, u32 *set, u32 first) {
    u32 s = blockIdx.x;
    for (u32 r = starts[s] + threadIdx.y * 32 + threadIdx.x; r < starts[s + 1]; r += 256) set[r] = first + s;
}

// out[row, :] = in[set[row], :], or in[0, :] without sets
extern "C" __global__ void spread(const float *in, const u32 *set, float *out, u64 rows, u32 n) {
    GRID(i, rows * n) {
        u64 row; u32 col;
        place(i, n, row, col);
        out[i] = in[(set ? (u64)set[row] * n : 0) + col];
    }
}

// The largest of each column of a set and the first row that attains it, merged with what `best`
// and `row_of` hold of earlier rows of the same set; the set's first row where nothing is a number. One
// block per set and 32 columns. What is compared is σ(z + shift), with a shift of the set or, unless
// `per_set`, of all; a null shift is none.
extern "C" __global__ void pool_max(const float *z, const u32 *starts, const float *shift, int per_set, int kind,
                                    float leak, float *best, u32 *row_of, u32 first, u32 first_row, u32 n) {
    __shared__ float value[8][33];
    __shared__ u32 where[8][33];
    u32 s = blockIdx.x, col = blockIdx.y * 32 + threadIdx.x;
    float top = -__int_as_float(0x7f800000); u32 at = 0xffffffffu;
    bool bad = false; float nan = 0.0f;
    float b = shift && col < n ? shift[(per_set ? (u64)(first + s) * n : 0) + col] : 0.0f;
    if (col < n)
        for (u32 r = starts[s] + threadIdx.y; r < starts[s + 1]; r += 8) {
            float v, slope, curvature;
            activation(kind, leak, z[(u64)r * n + col] + b, v, slope, curvature);
            if (v > top) { top = v; at = r; }
            if (!(v - v == 0.0f)) { bad = true; nan = v; }
        }
    value[threadIdx.y][threadIdx.x] = bad ? nan - nan : top;   // not a number stays visible
    where[threadIdx.y][threadIdx.x] = at;
    __syncthreads();
    if (threadIdx.y != 0 || col >= n) return;
    top = value[0][threadIdx.x]; at = where[0][threadIdx.x];
    for (int y = 1; y < 8; y++) {
        float v = value[y][threadIdx.x]; u32 w = where[y][threadIdx.x];
        if (v > top || (v == top && w < at) || v != v) { top = v; at = w; }
    }
    u64 o = (u64)(first + s) * n + col;
    if (top > best[o] || top != top) { best[o] = top; row_of[o] = (at == 0xffffffffu ? starts[s] : at) + first_row; }
}

extern "C" __global__ void normals(float *out, u64 count, u64 start, u32 step, u32 k0, u32 k1) {
    GRID(i, count) out[i] = normal_at(k0, k1, step, start + i);
}
