// Gaussians, alphabets, memory cells, and what weights look like. sums.cu stands before this file.

// μ + σ ξ
extern "C" __global__ void draw(const float *mean, const float *log_std_dev, const float *noise, float *out, u64 count) {
    GRID(i, count) out[i] = mean[i] + expf(log_std_dev[i]) * noise[i];
}

// ∂L/∂ log σ = g σ ξ
extern "C" __global__ void draw_backward(const float *log_std_dev, const float *noise, const float *g, float *out,
                                         u64 count) {
    GRID(i, count) out[i] = g[i] * expf(log_std_dev[i]) * noise[i];
}

// log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²)/(2 σ_p²) − ½
extern "C" __global__ void kl(const float *mean, const float *log_std_dev, const float *prior_mean,
                              const float *prior_log_std_dev, float *out, u64 count) {
    GRID(i, count) {
        float s = log_std_dev[i], p = prior_log_std_dev[i], way = mean[i] - prior_mean[i];
        out[i] = p - s + 0.5f * (expf(2.0f * s) + way * way) * expf(-2.0f * p) - 0.5f;
    }
}

// Gradients with respect to the four arguments, one after the other in `out`.
extern "C" __global__ void kl_backward(const float *mean, const float *log_std_dev, const float *prior_mean,
                                       const float *prior_log_std_dev, const float *g, float *out, u64 count) {
    GRID(i, count) {
        float precision = expf(-2.0f * prior_log_std_dev[i]), variance = expf(2.0f * log_std_dev[i]);
        float way = mean[i] - prior_mean[i], pull = g[i] * way * precision;
        out[i] = pull;
        out[count + i] = g[i] * (variance * precision - 1.0f);
        out[2 * count + i] = -pull;
        out[3 * count + i] = g[i] * (1.0f - (variance + way * way) * precision);
    }
}

// The largest of a row of log potentials and Σ exp(f − largest), by a warp.
__device__ __forceinline__ void log_sum(const float *f, u32 size, float &largest, float &sum) {
    largest = __int_as_float(0xff800000);
    for (u32 k = threadIdx.x & 31; k < size; k += 32) largest = fmaxf(largest, f[k]);
    largest = warp_largest(largest);
    sum = 0.0f;
    for (u32 k = threadIdx.x & 31; k < size; k += 32) sum += expf(f[k] - largest);
    sum = warp_sum(sum);
}

// log p of the symbol of every row, a warp per row.
extern "C" __global__ void log_mass(const float *f, const u32 *symbols, float *out, u64 rows, u32 size) {
    u64 row = warp_row();
    if (row >= rows) return;
    float largest, sum;
    log_sum(f + row * size, size, largest, sum);
    if ((threadIdx.x & 31) == 0) out[row] = (f[row * size + symbols[row]] - largest) - logf(sum);
}

// log Σ exp f of every row, a warp per row.
extern "C" __global__ void log_sum_exp(const float *f, float *out, u64 rows, u32 size) {
    u64 row = warp_row();
    if (row >= rows) return;
    float largest, sum;
    log_sum(f + row * size, size, largest, sum);
    if ((threadIdx.x & 31) == 0) out[row] = largest + logf(sum);
}

// ∂L/∂f = g (1[k = x] − p(k)), with log Z = f_x − log p(x)
extern "C" __global__ void log_mass_backward(const float *f, const u32 *symbols, const float *mass, const float *g,
                                             float *out, u64 count, u32 size) {
    GRID(i, count) {
        u64 row; u32 k;
        place(i, size, row, k);
        u32 symbol = symbols[row];
        float share = expf(f[i] - (f[row * size + symbol] - mass[row]));
        out[i] = g[row] * ((k == symbol ? 1.0f : 0.0f) - share);
    }
}

// The share of every symbol in its row, a warp per row.
extern "C" __global__ void softmax(const float *f, float *out, u64 rows, u32 size) {
    u64 row = warp_row();
    if (row >= rows) return;
    float largest, sum;
    log_sum(f + row * size, size, largest, sum);
    for (u32 k = threadIdx.x & 31; k < size; k += 32) out[row * size + k] = expf(f[row * size + k] - largest) / sum;
}

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c'),  gates [i, f, g, o]
extern "C" __global__ void cell(const float *gates, const float *state, float *hidden, float *memory, u64 count, u32 width) {
    GRID(at, count) {
        u64 row; u32 unit;
        place(at, width, row, unit);
        const float *own = gates + 4 * row * width + unit;
        float next = sigmoid(own[width]) * state[at] + sigmoid(own[0]) * tanhf(own[2 * width]);
        memory[at] = next;
        hidden[at] = sigmoid(own[3 * width]) * tanhf(next);
    }
}

extern "C" __global__ void cell_backward(const float *gates, const float *state, const float *of_hidden,
                                         const float *of_memory, float *to_gates, float *to_state, u64 count, u32 width) {
    GRID(at, count) {
        u64 row; u32 unit;
        place(at, width, row, unit);
        const float *own = gates + 4 * row * width + unit;
        float *out = to_gates + 4 * row * width + unit;
        float i = sigmoid(own[0]), f = sigmoid(own[width]), o = sigmoid(own[3 * width]);
        float g = tanhf(own[2 * width]), c = state[at], bent = tanhf(f * c + i * g);
        float h = of_hidden ? of_hidden[at] : 0.0f;
        float m = (of_memory ? of_memory[at] : 0.0f) + h * o * (1.0f - bent * bent);
        out[0] = m * g * i * (1.0f - i);
        out[width] = m * c * f * (1.0f - f);
        out[2 * width] = m * i * (1.0f - g * g);
        out[3 * width] = h * bent * o * (1.0f - o);
        to_state[at] = m * f;
    }
}

// (Σw)²/Σw², the share of the near ones and the largest share of every anchor, w = exp(f + ω): a warp per anchor.
// mode: 0 no ω, 1 one for every candidate, 2 one row for all anchors.
extern "C" __global__ void weight_rows(const float *f, const float *log_weights, const float *near, double *out,
                                       u64 anchors, u32 count, int mode) {
    u64 anchor = warp_row();
    if (anchor >= anchors) return;
    u64 first = anchor * count;
    const float *shift = mode == 1 ? log_weights + first : log_weights;
    float largest = __int_as_float(0xff800000);
    for (u32 k = threadIdx.x & 31; k < count; k += 32) largest = fmaxf(largest, f[first + k] + (mode ? shift[k] : 0.0f));
    largest = warp_largest(largest);
    double sum = 0.0, squares = 0.0, close = 0.0;
    for (u32 k = threadIdx.x & 31; k < count; k += 32) {
        double w = expf(f[first + k] + (mode ? shift[k] : 0.0f) - largest);
        sum += w; squares += w * w;
        if (near) close += w * near[first + k];
    }
    sum = warp_total(sum); squares = warp_total(squares); close = warp_total(close);
    if (threadIdx.x & 31) return;
    out[3 * anchor] = sum * sum / squares; out[3 * anchor + 1] = close / sum; out[3 * anchor + 2] = 1.0 / sum;
}

// Means of rows of three, by one block.
extern "C" __global__ void figure_means(const double *rows, float *out, u64 anchors) {
    for (u32 figure = 0; figure < 3; figure++) {
        double sum = 0.0;
        for (u64 a = threadIdx.x; a < anchors; a += blockDim.x) sum += rows[3 * a + figure];
        sum = block_total(sum);
        if (threadIdx.x == 0) out[figure] = (float)(sum / (double)(anchors ? anchors : 1));
    }
}

// mean over sets of (mean over anchors of log Z − mean over elements of f), by one block; a warp per set.
extern "C" __global__ void mean_nats(const float *log_partition, const u32 *starts, const float *means, float *out,
                                     u32 sets) {
    double sum = 0.0;
    for (u32 set = threadIdx.x >> 5; set < sets; set += blockDim.x >> 5) {
        u32 first = starts[set], last = starts[set + 1];
        double of_set = 0.0;
        for (u32 a = first + (threadIdx.x & 31); a < last; a += 32) of_set += log_partition[a];
        of_set = warp_total(of_set) / (double)(last - first) - (double)means[set];
        if ((threadIdx.x & 31) == 0) sum += of_set;
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) out[0] = (float)(sum / (double)sets);
}
