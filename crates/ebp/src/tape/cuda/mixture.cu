// Mixtures of Gaussians with triangular scales, as mixture/cpu.rs. common.cu and sums.cu stand before this file.
//
// Kernels that look at every component from every place are compiled for one, two and three dimensions, whose
// numbers stay in registers, and once for any others.

#define MOST_DIMS 16
#define LOG_ROOT_TAU 0.9189385f
// Numbers of components that a block of places keeps.
#define TILE 4096
// Warps that share the places of a row, for the gradient of its components.
#define SLICES 8

__device__ __forceinline__ float held(float log_scale) { return fminf(fmaxf(log_scale, -6.0f), 1.5f); }
__device__ __forceinline__ u32 component_width(u32 dims) { return 1 + 2 * dims + dims * (dims - 1) / 2; }
__device__ __forceinline__ u32 below(u32 a, u32 b) { return a * (a - 1) / 2 + b; }

// log π of every component, a warp per row.
extern "C" __global__ void mixture_shares(const float *written, float *log_pi, u64 rows, u32 components, u32 dims) {
    u32 width = component_width(dims), lane = threadIdx.x & 31;
    u64 row = warp_row();
    if (row >= rows) return;
    const float *own = written + row * components * width;
    float largest = -1e30f, sum = 0.0f;
    for (u32 m = lane; m < components; m += 32) largest = fmaxf(largest, own[m * width]);
    largest = warp_largest(largest);
    for (u32 m = lane; m < components; m += 32) sum += expf(own[m * width] - largest);
    float log_sum = largest + logf(warp_sum(sum));
    for (u32 m = lane; m < components; m += 32) log_pi[row * components + m] = own[m * width] - log_sum;
}

// μ + T ξ of a component.
__device__ void mixture_draw(const float *own, const float *xi, float *x, u32 dims) {
    for (u32 a = 0; a < dims; a++) {
        float to = own[1 + a] + expf(held(own[1 + dims + a])) * xi[a];
        for (u32 b = 0; b < a; b++) to += own[1 + 2 * dims + below(a, b)] * xi[b];
        x[a] = to;
    }
}

// `each` draws of every component, and their log shares; a thread per draw.
extern "C" __global__ void mixture_draws(const float *written, const float *log_pi, const float *noise, float *values,
                                         float *shares, u64 count, u32 dims, u32 each, float log_each) {
    u32 width = component_width(dims);
    GRID(i, count) {
        u64 component = i / each;
        mixture_draw(written + component * width, noise + i * dims, values + i * dims, dims);
        shares[i] = log_pi[component] - log_each;
    }
}

// ∂L/∂numbers of every component; a thread per component. The first number is what its own shares say
// (mixture_logits).
extern "C" __global__ void mixture_draws_backward(const float *written, const float *noise, const float *of_values,
                                                  const float *of_shares, float *gradient, u64 count, u32 dims,
                                                  u32 each) {
    u32 width = component_width(dims);
    GRID(i, count) {
        const float *own = written + i * width;
        float *to = gradient + i * width;
        for (u32 k = 0; k < width; k++) to[k] = 0.0f;
        for (u32 r = 0; of_values && r < each; r++) {
            const float *g = of_values + (i * each + r) * dims, *xi = noise + (i * each + r) * dims;
            for (u32 a = 0; a < dims; a++) {
                to[1 + a] += g[a];
                to[1 + dims + a] += g[a] * xi[a] * expf(held(own[1 + dims + a]));
                for (u32 b = 0; b < a; b++) to[1 + 2 * dims + below(a, b)] += g[a] * xi[b];
            }
        }
        for (u32 r = 0; of_shares && r < each; r++) to[0] += of_shares[i * each + r];
        for (u32 a = 0; a < dims; a++) if (held(own[1 + dims + a]) != own[1 + dims + a]) to[1 + dims + a] = 0.0f;
    }
}

// Draws of whole mixtures, a thread per draw.
extern "C" __global__ void mixture_picks(const float *written, const float *log_pi, const float *uniforms,
                                         const float *noise, float *values, u64 count, u32 per_row, u32 components,
                                         u32 dims) {
    u32 width = component_width(dims);
    GRID(i, count) {
        u64 row = i / per_row;
        float left = uniforms[i];
        u32 chosen = components - 1;
        for (u32 m = 0; m < components; m++) {
            left -= expf(log_pi[row * components + m]);
            if (left < 0.0f) { chosen = m; break; }
        }
        mixture_draw(written + (row * components + chosen) * width, noise + i * dims, values + i * dims, dims);
    }
}

// What does not depend on the place: log π − d log √2π − Σ log σ, μ, 1/σ, what stands below the diagonal.
__device__ __forceinline__ float settled(const float *own, float log_pi, u32 k, u32 dims) {
    if (k == 0) {
        float log = log_pi - LOG_ROOT_TAU * (float)dims;
        for (u32 a = 0; a < dims; a++) log -= held(own[1 + dims + a]);
        return log;
    }
    return k > dims && k <= 2 * dims ? expf(-held(own[k])) : own[k];
}

// D dimensions, or `dims` where D = 0.
template <u32 D> struct Mixture {
    static const u32 MOST = D ? D : MOST_DIMS;
    static const u32 WIDTH = 1 + 2 * MOST + MOST * (MOST - 1) / 2;

    // log π N of a settled component at x, and z = T⁻¹ (x − μ).
    static __device__ __forceinline__ float look(const float *own, const float *x, float *z, u32 any) {
        const u32 dims = D ? D : any;
        float square = 0.0f;
#pragma unroll
        for (u32 a = 0; a < dims; a++) {
            float way = x[a] - own[1 + a];
#pragma unroll
            for (u32 b = 0; b < a; b++) way -= own[1 + 2 * dims + below(a, b)] * z[b];
            z[a] = way * own[1 + dims + a];
            square += z[a] * z[a];
        }
        return own[0] - 0.5f * square;
    }

    // w = T⁻ᵀ z.
    static __device__ __forceinline__ void turn(const float *own, const float *z, float *w, u32 any) {
        const u32 dims = D ? D : any;
#pragma unroll
        for (u32 back = 0; back < dims; back++) {
            const u32 a = dims - 1 - back;
            float to = z[a];
#pragma unroll
            for (u32 b = a + 1; b < dims; b++) to -= own[1 + 2 * dims + below(b, a)] * w[b];
            w[a] = to * own[1 + dims + a];
        }
    }

    // For the places of a row, a block for each `blockDim.x` of them: log q (`g` null), or ∂L/∂places.
    static __device__ void places(const float *written, const float *log_pi, const float *x, const float *log_density,
                                  const float *g, float *out, u32 per_row, u32 components, u32 any, float log_rest,
                                  float log_even, float low, float high, int has_uniform, float *kept) {
        const u32 dims = D ? D : any, width = component_width(dims), most = TILE / width;
        u32 chunks = (per_row + blockDim.x - 1) / blockDim.x;
        u64 row = blockIdx.x / chunks;
        u32 within = blockIdx.x % chunks * blockDim.x + threadIdx.x;
        bool is_place = within < per_row;
        u64 i = row * per_row + (is_place ? within : 0);
        float own[MOST], z[MOST], w[MOST], to[MOST], largest = -1e30f, sum = 0.0f, gone = 0.0f, slope = 0.0f;
#pragma unroll
        for (u32 a = 0; a < dims; a++) { own[a] = x[i * dims + a]; to[a] = 0.0f; }
        if (g) { gone = log_rest - log_density[i]; slope = g[i]; }
        for (u32 first = 0; first < components; first += most) {
            u32 count = min(most, components - first);
            __syncthreads();
            for (u32 e = threadIdx.x; e < count * width; e += blockDim.x) {
                u64 m = row * components + first + e / width;
                kept[e] = settled(written + m * width, log_pi[m], e % width, dims);
            }
            __syncthreads();
            for (u32 m = 0; m < count; m++) {
                float log = look(kept + m * width, own, z, dims);
                if (g) {
                    float share = slope * expf(log + gone);
                    turn(kept + m * width, z, w, dims);
#pragma unroll
                    for (u32 a = 0; a < dims; a++) to[a] -= share * w[a];
                } else {
                    float more = fmaxf(largest, log);
                    sum = sum * expf(largest - more) + expf(log - more);
                    largest = more;
                }
            }
        }
        if (!is_place) return;
        if (g) {
#pragma unroll
            for (u32 a = 0; a < dims; a++) out[i * dims + a] = to[a];
            return;
        }
        float log_q = largest + logf(sum);
        if (has_uniform) {
            log_q += log_rest;
            bool is_inside = true;
#pragma unroll
            for (u32 a = 0; a < dims; a++) is_inside = is_inside && own[a] >= low && own[a] <= high;
            if (is_inside) {
                float more = fmaxf(log_q, log_even), less = fminf(log_q, log_even);
                log_q = more + log1pf(expf(less - more));
            }
        }
        out[i] = log_q;
    }

    // ∂L/∂numbers: a block for 32 components of a row, whose warps share its places.
    static __device__ void numbers(const float *written, const float *log_pi, const float *x, const float *log_density,
                                   const float *g, float *gradient, u32 per_row, u32 components, u32 any,
                                   float log_rest, float (*parts)[32]) {
        const u32 dims = D ? D : any, width = component_width(dims);
        u32 groups = (components + 31) / 32, lane = threadIdx.x & 31, slice = threadIdx.x >> 5;
        u64 row = blockIdx.x / groups;
        u32 number = blockIdx.x % groups * 32 + lane;
        bool is_component = number < components;
        u64 m = row * components + (is_component ? number : 0);
        float own[WIDTH], to[WIDTH], z[MOST], w[MOST], scale[MOST], around[MOST];
#pragma unroll
        for (u32 k = 0; k < width; k++) { own[k] = settled(written + m * width, log_pi[m], k, dims); to[k] = 0.0f; }
#pragma unroll
        for (u32 a = 0; a < dims; a++) scale[a] = expf(held(written[m * width + 1 + dims + a]));
        for (u32 r = slice; r < per_row; r += SLICES) {
            u64 at = row * per_row + r;
#pragma unroll
            for (u32 a = 0; a < dims; a++) around[a] = x[at * dims + a];
            float share = g[at] * expf(look(own, around, z, dims) + log_rest - log_density[at]);
            turn(own, z, w, dims);
            to[0] += share;
#pragma unroll
            for (u32 a = 0; a < dims; a++) {
                to[1 + a] += share * w[a];
                to[1 + dims + a] += share * (w[a] * z[a] * scale[a] - 1.0f);
#pragma unroll
                for (u32 b = 0; b < a; b++) to[1 + 2 * dims + below(a, b)] += share * w[a] * z[b];
            }
        }
#pragma unroll
        for (u32 k = 0; k < width; k++) {
            __syncthreads();
            parts[slice][lane] = to[k];
            __syncthreads();
            if (slice || !is_component) continue;
            float sum = 0.0f;
            for (u32 s = 0; s < SLICES; s++) sum += parts[s][lane];
            float log_scale = written[m * width + k];
            bool is_cut = k > dims && k <= 2 * dims && held(log_scale) != log_scale;
            gradient[m * width + k] = is_cut ? 0.0f : sum;
        }
    }
};

#define BY_DIMS(call) \
    switch (dims) { \
        case 1: Mixture<1>::call; break; \
        case 2: Mixture<2>::call; break; \
        case 3: Mixture<3>::call; break; \
        default: Mixture<0>::call; \
    }

// log q; nothing is uniform unless `has_uniform`.
extern "C" __global__ void mixture_log_density(const float *written, const float *log_pi, const float *places, float *out,
                                               u32 per_row, u32 components, u32 dims, float log_rest, float log_even,
                                               float low, float high, int has_uniform) {
    __shared__ float kept[TILE];
    BY_DIMS(places(written, log_pi, places, 0, 0, out, per_row, components, dims, log_rest, log_even, low, high,
                   has_uniform, kept))
}

// ∂L/∂places.
extern "C" __global__ void mixture_density_places(const float *written, const float *log_pi, const float *places,
                                                  const float *log_density, const float *g, float *out, u32 per_row,
                                                  u32 components, u32 dims, float log_rest) {
    __shared__ float kept[TILE];
    BY_DIMS(places(written, log_pi, places, log_density, g, out, per_row, components, dims, log_rest, 0.0f, 0.0f, 0.0f,
                   0, kept))
}

// ∂L/∂numbers; the first number is its shares alone (mixture_logits).
extern "C" __global__ void mixture_density_components(const float *written, const float *log_pi, const float *places,
                                                      const float *log_density, const float *g, float *gradient,
                                                      u32 per_row, u32 components, u32 dims, float log_rest) {
    __shared__ float parts[SLICES][32];
    BY_DIMS(numbers(written, log_pi, places, log_density, g, gradient, per_row, components, dims, log_rest, parts))
}

// ∂L/∂logits: the shares of a row less π times their sum; a warp per row.
extern "C" __global__ void mixture_logits(const float *log_pi, float *gradient, u64 rows, u32 components, u32 dims) {
    u32 width = component_width(dims), lane = threadIdx.x & 31;
    u64 row = warp_row();
    if (row >= rows) return;
    float *own = gradient + row * components * width, total = 0.0f;
    for (u32 m = lane; m < components; m += 32) total += own[m * width];
    total = warp_sum(total);
    for (u32 m = lane; m < components; m += 32) own[m * width] -= expf(log_pi[row * components + m]) * total;
}
