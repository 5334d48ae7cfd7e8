// Candidate values of anchors: log-partitions, and what of their gradients is not a network's. kernels.cu stands
// before this file.

// Rows [candidate, location] of anchors first.. ; anchors have k candidates each.
extern "C" __global__ void candidate_rows(const float *values, const float *locations, const u32 *anchor_set,
                                          float *rows, u32 *set, u64 count, u32 k, u32 dx, u32 dt, int shared) {
    GRID(i, count) {
        u64 anchor = i / k; u32 which = (u32)(i % k);
        const float *v = values + (shared ? (u64)which : i) * dx;
        float *row = rows + i * (dx + dt);
        for (u32 j = 0; j < dx; j++) row[j] = v[j];
        for (u32 j = 0; j < dt; j++) row[dx + j] = locations[anchor * dt + j];
        set[i] = anchor_set[anchor];
    }
}

// log Σ_k exp(f + ω) of each anchor, a block of 128 per anchor. mode 0: no ω, 1: per anchor, 2: shared.
extern "C" __global__ void log_sum_exp(const float *f, const float *omega, float *out, u32 k, int mode) {
    __shared__ float part[128];
    u64 a = blockIdx.x; u32 t = threadIdx.x;
    float top = -__int_as_float(0x7f800000);
    for (u32 i = t; i < k; i += 128)
        top = fmaxf(top, f[a * k + i] + (mode == 0 ? 0.0f : omega[mode == 1 ? a * k + i : i]));
    part[t] = top;
    __syncthreads();
    for (int o = 64; o > 0; o >>= 1) { if (t < o) part[t] = fmaxf(part[t], part[t + o]); __syncthreads(); }
    top = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (u32 i = t; i < k; i += 128)
        sum += expf(f[a * k + i] + (mode == 0 ? 0.0f : omega[mode == 1 ? a * k + i : i]) - top);
    part[t] = sum;
    __syncthreads();
    for (int o = 64; o > 0; o >>= 1) { if (t < o) part[t] += part[t + o]; __syncthreads(); }
    if (t == 0) out[a] = top + logf(part[0]);
}

// cotangent of every candidate: c_a exp(f + ω − log Z)
extern "C" __global__ void candidate_weights(const float *f, const float *omega, const float *log_z,
                                             const float *cotangent, float *out, u64 count, u32 k, int mode) {
    GRID(i, count) {
        u64 a = i / k;
        float o = mode == 0 ? 0.0f : omega[mode == 1 ? i : i % k];
        out[i] = cotangent[a] * expf(f[i] + o - log_z[a]);
    }
}

// out[j] += Σ_anchors in[anchor, j], j < width: shared candidates gather over anchors.
extern "C" __global__ void gather_shared(const float *in, float *out, u32 anchors, u32 k, u32 d, u32 dx) {
    GRID(j, (u64)k * dx) {
        u64 which = j / dx; u32 c = (u32)(j % dx);
        float sum = 0.0f;
        for (u32 a = 0; a < anchors; a++) sum += in[((u64)a * k + which) * d + c];
        out[j] += sum;
    }
}

// out[anchor, j] = Σ_k in[anchor, k, dx + j] in f64, j < d − dx: locations gather over candidates. A block
// of 256 per anchor.
extern "C" __global__ void location_sums(const float *in, float *out, u32 k, u32 d, u32 dx) {
    u64 a = blockIdx.x;
    for (u32 j = dx; j < d; j++) {
        double sum = 0.0, total;
        for (u32 i = threadIdx.x; i < k; i += 256) sum += (double)in[(a * k + i) * d + j];
        sum_block(sum, &total);
        if (threadIdx.x == 0) out[a * (d - dx) + j - dx] = (float)total;
        __syncthreads();
    }
}
