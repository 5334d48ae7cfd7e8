// Mixtures of Gaussians with triangular scales, as mixture/cpu.rs. common.cu stands before this file.

#define MOST_DIMS 16
#define LOG_ROOT_TAU 0.9189385f

__device__ __forceinline__ float held(float log_scale) { return fminf(fmaxf(log_scale, -6.0f), 1.5f); }
__device__ __forceinline__ u32 component_width(u32 dims) { return 1 + 2 * dims + dims * (dims - 1) / 2; }
__device__ __forceinline__ u32 below(u32 a, u32 b) { return a * (a - 1) / 2 + b; }

// log π of every component, a thread per row.
extern "C" __global__ void mixture_shares(const float *written, float *log_pi, u64 rows, u32 components, u32 dims) {
    u32 width = component_width(dims);
    GRID(row, rows) {
        const float *own = written + row * components * width;
        float largest = own[0], sum = 0.0f;
        for (u32 m = 1; m < components; m++) largest = fmaxf(largest, own[m * width]);
        for (u32 m = 0; m < components; m++) sum += expf(own[m * width] - largest);
        float log_sum = largest + logf(sum);
        for (u32 m = 0; m < components; m++) log_pi[row * components + m] = own[m * width] - log_sum;
    }
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

// ∂L/∂numbers of every component; a thread per component.
extern "C" __global__ void mixture_draws_backward(const float *written, const float *log_pi, const float *noise,
                                                  const float *of_values, const float *of_shares, float *gradient,
                                                  u64 count, u32 components, u32 dims, u32 each) {
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
        if (of_shares) {
            u64 first = i / components * components;
            float total = 0.0f, part = 0.0f;
            for (u32 r = 0; r < components * each; r++) total += of_shares[first * each + r];
            for (u32 r = 0; r < each; r++) part += of_shares[i * each + r];
            to[0] = part - expf(log_pi[i]) * total;
        }
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

// log π N of a component at x, and z = T⁻¹ (x − μ).
__device__ float mixture_look(const float *own, float log_pi, const float *x, float *z, u32 dims) {
    float square = 0.0f, log = log_pi - LOG_ROOT_TAU * (float)dims;
    for (u32 a = 0; a < dims; a++) {
        float way = x[a] - own[1 + a], log_scale = held(own[1 + dims + a]);
        for (u32 b = 0; b < a; b++) way -= own[1 + 2 * dims + below(a, b)] * z[b];
        z[a] = way * expf(-log_scale);
        square += z[a] * z[a];
        log -= log_scale;
    }
    return log - 0.5f * square;
}

// w = T⁻ᵀ z.
__device__ void mixture_turn(const float *own, const float *z, float *w, u32 dims) {
    for (u32 a = dims; a-- > 0;) {
        float to = z[a];
        for (u32 b = a + 1; b < dims; b++) to -= own[1 + 2 * dims + below(b, a)] * w[b];
        w[a] = to * expf(-held(own[1 + dims + a]));
    }
}

// log q, a thread per place. share ε = 0: nothing is uniform.
extern "C" __global__ void mixture_log_density(const float *written, const float *log_pi, const float *places, float *out,
                                               u64 count, u32 per_row, u32 components, u32 dims, float log_rest,
                                               float log_even, float low, float high, int has_uniform) {
    u32 width = component_width(dims);
    GRID(i, count) {
        u64 first = i / per_row * components;
        const float *x = places + i * dims;
        float z[MOST_DIMS], largest = -1e30f, sum = 0.0f;
        for (u32 m = 0; m < components; m++) {
            float log = mixture_look(written + (first + m) * width, log_pi[first + m], x, z, dims);
            if (log > largest) { sum = sum * expf(largest - log) + 1.0f; largest = log; }
            else sum += expf(log - largest);
        }
        float log_q = largest + logf(sum);
        if (has_uniform) {
            log_q += log_rest;
            bool is_inside = true;
            for (u32 a = 0; a < dims; a++) is_inside = is_inside && x[a] >= low && x[a] <= high;
            if (is_inside) {
                float more = fmaxf(log_q, log_even), less = fminf(log_q, log_even);
                log_q = more + log1pf(expf(less - more));
            }
        }
        out[i] = log_q;
    }
}

// ∂L/∂places, a thread per place.
extern "C" __global__ void mixture_density_places(const float *written, const float *log_pi, const float *places,
                                                  const float *log_density, const float *g, float *out, u64 count,
                                                  u32 per_row, u32 components, u32 dims, float log_rest) {
    u32 width = component_width(dims);
    GRID(i, count) {
        u64 first = i / per_row * components;
        float z[MOST_DIMS], w[MOST_DIMS], to[MOST_DIMS];
        for (u32 a = 0; a < dims; a++) to[a] = 0.0f;
        for (u32 m = 0; m < components; m++) {
            const float *own = written + (first + m) * width;
            float log = mixture_look(own, log_pi[first + m], places + i * dims, z, dims);
            float share = g[i] * expf(log + log_rest - log_density[i]);
            mixture_turn(own, z, w, dims);
            for (u32 a = 0; a < dims; a++) to[a] -= share * w[a];
        }
        for (u32 a = 0; a < dims; a++) out[i * dims + a] = to[a];
    }
}

// ∂L/∂numbers, a thread per component; the first number is its shares alone (mixture_logits).
extern "C" __global__ void mixture_density_components(const float *written, const float *log_pi, const float *places,
                                                      const float *log_density, const float *g, float *gradient,
                                                      u64 count, u32 per_row, u32 components, u32 dims, float log_rest) {
    u32 width = component_width(dims);
    GRID(i, count) {
        u64 row = i / components;
        const float *own = written + i * width;
        float *to = gradient + i * width, z[MOST_DIMS], w[MOST_DIMS];
        for (u32 k = 0; k < width; k++) to[k] = 0.0f;
        for (u32 r = 0; r < per_row; r++) {
            u64 at = row * per_row + r;
            float log = mixture_look(own, log_pi[i], places + at * dims, z, dims);
            float share = g[at] * expf(log + log_rest - log_density[at]);
            mixture_turn(own, z, w, dims);
            to[0] += share;
            for (u32 a = 0; a < dims; a++) {
                to[1 + a] += share * w[a];
                to[1 + dims + a] += share * (w[a] * z[a] * expf(held(own[1 + dims + a])) - 1.0f);
                for (u32 b = 0; b < a; b++) to[1 + 2 * dims + below(a, b)] += share * w[a] * z[b];
            }
        }
        for (u32 a = 0; a < dims; a++) if (held(own[1 + dims + a]) != own[1 + dims + a]) to[1 + dims + a] = 0.0f;
    }
}

// ∂L/∂logits: the shares of a row less π times their sum; a thread per row.
extern "C" __global__ void mixture_logits(const float *log_pi, float *gradient, u64 rows, u32 components, u32 dims) {
    u32 width = component_width(dims);
    GRID(row, rows) {
        float *own = gradient + row * components * width, total = 0.0f;
        for (u32 m = 0; m < components; m++) total += own[m * width];
        for (u32 m = 0; m < components; m++) own[m * width] -= expf(log_pi[row * components + m]) * total;
    }
}
