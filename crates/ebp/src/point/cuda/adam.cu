// Adam with a moving average. kernels.cu stands before this file.

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

// As nn/adam.rs and nn/moving_average.rs; at most 256 parts. A gradient that is not finite changes nothing; a
// null average is not kept.
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
        if (average) average[i] += n.average_gain * (moved - average[i]);
    }
}
