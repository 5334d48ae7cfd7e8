// What a whole training step on the GPU has beside kernels.cu, which stands before this file: the
// law of θ, the rows that attain a maximum, Adam.

// ---------------------------------------------------------------- θ

// log σ of coordinate c, and whether it is inside its range.
__device__ __forceinline__ float log_std_dev(const float *out, u64 row, u32 c, u32 k, float first, float low,
                                             float high, bool &is_inside) {
    float raw = out[row * 2 * k + k + c] + first;
    is_inside = raw >= low && raw <= high;
    return fminf(fmaxf(raw, low), high);
}

// θ = μ + σ ξ, and KL = −log σ + (σ² + μ²)/2 − ½ of every coordinate. `out` is [sets, 2 k].
extern "C" __global__ void draw_theta(const float *out, float *theta, float *kl, u32 sets, u32 k, float first,
                                      float low, float high, u32 k0, u32 k1) {
    GRID(i, (u64)sets * k) {
        u64 row; u32 c; bool is_inside;
        place(i, k, row, c);
        float mean = out[row * 2 * k + c], l = log_std_dev(out, row, c, k, first, low, high, is_inside);
        float s = expf(l);
        theta[i] = mean + s * normal_at(k0, k1, 0, i);
        kl[i] = 0.5f * (s * s + mean * mean) - 0.5f - l;
    }
}

// ∂L/∂out from ∂L/∂θ and the weight of each set's KL.
extern "C" __global__ void theta_backward(const float *out, const float *g_theta, const float *kl_weights, float *g,
                                          u32 sets, u32 k, float first, float low, float high, u32 k0, u32 k1) {
    GRID(i, (u64)sets * k) {
        u64 row; u32 c; bool is_inside;
        place(i, k, row, c);
        float mean = out[row * 2 * k + c], l = log_std_dev(out, row, c, k, first, low, high, is_inside);
        float s = expf(l), w = kl_weights[row];
        g[row * 2 * k + c] = g_theta[i] + w * mean;
        g[row * 2 * k + k + c] = is_inside ? g_theta[i] * s * normal_at(k0, k1, 0, i) + w * (s * s - 1.0f) : 0.0f;
    }
}

extern "C" __global__ void rectify(const float *in, float *out, u64 count) { GRID(i, count) out[i] = fmaxf(in[i], 0.0f); }

// g ← g where the rectifier's argument was positive
extern "C" __global__ void rectify_backward(float *g, const float *in, u64 count) { GRID(i, count) if (!(in[i] > 0.0f)) g[i] = 0.0f; }

// out[i] = in[i], times `factor` from `start` on
extern "C" __global__ void scale_from(const float *in, float *out, u64 count, u64 start, float factor) {
    GRID(i, count) out[i] = i < start ? in[i] : in[i] * factor;
}

// ---------------------------------------------------------------- rows that attain a maximum

extern "C" __global__ void mark(const u32 *critical, u32 *rank, u32 count) { GRID(i, count) rank[critical[i]] = 1; }

// Numbers the marked rows of each set from 1, in their order; a block of 1024 per set.
extern "C" __global__ void rank_marked(const u32 *starts, u32 *rank, u32 *sizes) {
    __shared__ u32 of_warps[32];
    u32 s = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32, before = 0;
    for (u32 base = starts[s]; base < starts[s + 1]; base += 1024) {
        u32 row = base + threadIdx.x;
        bool is_marked = row < starts[s + 1] && rank[row];
        u32 votes = __ballot_sync(~0u, is_marked);
        if (lane == 0) of_warps[warp] = __popc(votes);
        __syncthreads();
        u32 mine = before, all = 0;
        for (u32 w = 0; w < 32; w++) { if (w < warp) mine += of_warps[w]; all += of_warps[w]; }
        if (is_marked) rank[row] = 1 + mine + __popc(votes & ((1u << lane) - 1));
        before += all;
        __syncthreads();
    }
    if (threadIdx.x == 0) sizes[s] = before;
}

// Where each set's marked rows begin: sums of sizes.
extern "C" __global__ void first_places(const u32 *sizes, u32 *places, u32 sets) {
    if (blockIdx.x || threadIdx.x) return;
    u32 sum = 0;
    for (u32 s = 0; s < sets; s++) { places[s] = sum; sum += sizes[s]; }
    places[sets] = sum;
}

// The marked rows, one after the other; a block per set.
extern "C" __global__ void gather_marked(const float *x, const u32 *starts, const u32 *rank, const u32 *places,
                                         float *out, u32 d) {
    u32 s = blockIdx.x;
    for (u32 row = starts[s] + threadIdx.x; row < starts[s + 1]; row += blockDim.x)
        if (rank[row])
            for (u32 c = 0; c < d; c++) out[(u64)(places[s] + rank[row] - 1) * d + c] = x[(u64)row * d + c];
}

// g[place of the row that attains maximum i, i mod n] = cotangent[i], for places first .. first + rows.
extern "C" __global__ void scatter_marked(const float *cotangent, const u32 *critical, const u32 *rank,
                                          const u32 *places, float *g, u32 count, u32 n, u32 first, u32 rows) {
    GRID(i, count) {
        u32 to = places[i / n] + rank[critical[i]] - 1 - first;
        if (to < rows) g[(u64)to * n + i % n] = cotangent[i];
    }
}

// ---------------------------------------------------------------- what a step found

// Of each set: 1/Σ w², the share of w near its points, the largest w, and Σ KL; w = exp(f + ω − log Z).
// A block of 256 per set.
extern "C" __global__ void set_figures(const float *f, const float *omega, const unsigned char *near,
                                       const float *log_z, const float *kl, float *out, u32 count, u32 k) {
    __shared__ float part[4][256];
    u32 s = blockIdx.x, t = threadIdx.x;
    float squares = 0.0f, close = 0.0f, top = 0.0f, sum = 0.0f;
    for (u32 i = t; i < count; i += 256) {
        u64 at = (u64)s * count + i;
        float w = expf(f[at] + omega[at] - log_z[s]);
        squares = fmaf(w, w, squares); top = fmaxf(top, w);
        if (near[at]) close += w;
    }
    for (u32 c = t; c < k; c += 256) sum += kl[(u64)s * k + c];
    part[0][t] = squares; part[1][t] = close; part[2][t] = top; part[3][t] = sum;
    for (u32 o = 128; o > 0; o >>= 1) {
        __syncthreads();
        if (t < o) {
            part[0][t] += part[0][t + o]; part[1][t] += part[1][t + o];
            part[2][t] = fmaxf(part[2][t], part[2][t + o]); part[3][t] += part[3][t + o];
        }
    }
    if (t == 0) { out[4 * s] = 1.0f / part[0][0]; out[4 * s + 1] = part[1][0]; out[4 * s + 2] = part[2][0]; out[4 * s + 3] = part[3][0]; }
}

// ---------------------------------------------------------------- Adam

// Σ g² in f64, by blocks.
extern "C" __global__ void square_sums(const float *g, double *parts, u64 count) {
    __shared__ double part[256];
    double sum = 0.0;
    GRID(i, count) sum += (double)g[i] * (double)g[i];
    part[threadIdx.x] = sum;
    for (u32 o = 128; o > 0; o >>= 1) { __syncthreads(); if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o]; }
    if (threadIdx.x == 0) parts[blockIdx.x] = part[0];
}

struct AdamNumbers { float beta1, gain1, beta2, gain2, keep, rate, root, floor, average_gain, limit; };

// As nn/adam.rs and nn/moving_average.rs; at most 256 parts. A gradient that is not finite changes nothing.
extern "C" __global__ void adam(float *w, float *m, float *v, float *average, const float *gradient,
                                const double *parts, u32 num_parts, AdamNumbers n, u64 count, double *square) {
    __shared__ double part[256];
    part[threadIdx.x] = threadIdx.x < num_parts ? parts[threadIdx.x] : 0.0;
    for (u32 o = 128; o > 0; o >>= 1) { __syncthreads(); if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o]; }
    __syncthreads();
    double total = part[0];
    if (blockIdx.x == 0 && threadIdx.x == 0) *square = total;
    if (!(total - total == 0.0)) return;
    double norm = sqrt(total);
    float scale = norm > n.limit ? (float)(n.limit / norm) : 1.0f;
    GRID(i, count) {
        float g = scale * gradient[i];
        float first = n.beta1 * m[i] + n.gain1 * g, second = n.beta2 * v[i] + n.gain2 * g * g;
        m[i] = first; v[i] = second;
        float moved = n.keep * w[i] - n.rate * first / (sqrtf(second) * n.root + n.floor);
        w[i] = moved;
        average[i] += n.average_gain * (moved - average[i]);
    }
}
