// What a whole training step on the GPU has beside kernels.cu, which stands before this file: the
// law of θ, and figures of a step.

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
