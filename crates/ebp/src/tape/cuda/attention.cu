// Attention between ragged sets, a warp per query (or key) and head. sums.cu stands before this file.
//
// `starts` holds the first query and the first key of every set, and the ends: [sets + 1, 2].

// Columns of a head that a lane adds up at once.
#define COLUMNS 8

__device__ __forceinline__ float dot(const float *a, const float *b, u32 n) {
    float sum = 0.0f;
    for (u32 i = 0; i < n; i++) sum = fmaf(a[i], b[i], sum);
    return sum;
}

// What softmax subtracts and divides by, over keys first..last, by a warp.
__device__ __forceinline__ void softmax_of(const float *q, const float *k, u32 first, u32 last, u32 width, u32 n,
                                           float scale, float &largest, float &sum) {
    float own = __int_as_float(0xff800000), part = 0.0f;
    for (u32 j = first + (threadIdx.x & 31); j < last; j += 32) {
        float logit = scale * dot(q, k + (u64)j * width, n);
        if (logit > own) { part = part * expf(own - logit) + 1.0f; own = logit; } else part += expf(logit - own);
    }
    largest = warp_largest(own);
    // A lane without keys has seen nothing: no difference of infinities.
    sum = warp_sum(part == 0.0f ? 0.0f : part * expf(own - largest));
}

// out[lane + 32 c] += Σ_i weight of lane i · rows[i], over `count` rows of a tile.
__device__ __forceinline__ void add_rows(float *sums, float weight, const float *rows, u32 count, u32 width, u32 n) {
    for (u32 i = 0; i < count; i++) {
        float w = __shfl_sync(0xffffffffu, weight, i);
#pragma unroll
        for (u32 c = 0; c < COLUMNS; c++) {
            u32 at = (threadIdx.x & 31) + 32 * c;
            if (at < n) sums[c] = fmaf(w, rows[(u64)i * width + at], sums[c]);
        }
    }
}

__device__ __forceinline__ void write_row(const float *sums, float *out, u32 n) {
#pragma unroll
    for (u32 c = 0; c < COLUMNS; c++) {
        u32 at = (threadIdx.x & 31) + 32 * c;
        if (at < n) out[at] = sums[c];
    }
}

__device__ __forceinline__ u32 at_most(u32 a, u32 b) { return a < b ? a : b; }

extern "C" __global__ void attention(const float *q, const float *k, const float *v, const u32 *set, const u32 *starts,
                                     float *out, u64 queries, u32 width, u32 n) {
    u32 heads = width / n, lane = threadIdx.x & 31;
    u64 warp = warp_row();
    if (warp >= queries * heads) return;
    u64 query = warp / heads;
    u32 head = (u32)(warp % heads) * n, own = set[query], first = starts[2 * own + 1], last = starts[2 * own + 3];
    const float *mine = q + query * width + head;
    float scale = 1.0f / sqrtf((float)n), largest, sum;
    softmax_of(mine, k + head, first, last, width, n, scale, largest, sum);
    for (u32 part = 0; part < n; part += 32 * COLUMNS) {
        float sums[COLUMNS] = {};
        for (u32 tile = first; tile < last; tile += 32) {
            u32 j = tile + lane;
            float w = j < last ? expf(scale * dot(mine, k + (u64)j * width + head, n) - largest) / sum : 0.0f;
            add_rows(sums, w, v + (u64)tile * width + head + part, at_most(32, last - tile), width, n - part);
        }
        write_row(sums, out + query * width + head + part, n - part);
    }
}

// ∂L/∂q, and what the keys need of every query and head: the largest logit, the sum, Σ w ∂L/∂w.
extern "C" __global__ void attention_queries(const float *q, const float *k, const float *v, const float *g, const u32 *set,
                                             const u32 *starts, float *to_q, float *figures, u64 queries, u32 width, u32 n) {
    u32 heads = width / n, lane = threadIdx.x & 31;
    u64 warp = warp_row();
    if (warp >= queries * heads) return;
    u64 query = warp / heads;
    u32 head = (u32)(warp % heads) * n, own = set[query], first = starts[2 * own + 1], last = starts[2 * own + 3];
    const float *mine = q + query * width + head, *given = g + query * width + head;
    float scale = 1.0f / sqrtf((float)n), largest, sum, mean = 0.0f;
    softmax_of(mine, k + head, first, last, width, n, scale, largest, sum);
    for (u32 j = first + lane; j < last; j += 32) {
        float w = expf(scale * dot(mine, k + (u64)j * width + head, n) - largest) / sum;
        mean += w * dot(given, v + (u64)j * width + head, n);
    }
    mean = warp_sum(mean);
    for (u32 part = 0; part < n; part += 32 * COLUMNS) {
        float sums[COLUMNS] = {};
        for (u32 tile = first; tile < last; tile += 32) {
            u32 j = tile + lane;
            float slope = 0.0f;
            if (j < last) {
                float w = expf(scale * dot(mine, k + (u64)j * width + head, n) - largest) / sum;
                slope = scale * w * (dot(given, v + (u64)j * width + head, n) - mean);
            }
            add_rows(sums, slope, k + (u64)tile * width + head + part, at_most(32, last - tile), width, n - part);
        }
        write_row(sums, to_q + query * width + head + part, n - part);
    }
    if (lane == 0) { figures[3 * warp] = largest; figures[3 * warp + 1] = sum; figures[3 * warp + 2] = mean; }
}

// ∂L/∂k and ∂L/∂v, from the figures of the queries.
extern "C" __global__ void attention_keys(const float *q, const float *k, const float *v, const float *g, const u32 *set,
                                          const u32 *starts, const float *figures, float *to_k, float *to_v, u64 keys,
                                          u32 width, u32 n) {
    u32 heads = width / n, lane = threadIdx.x & 31;
    u64 warp = warp_row();
    if (warp >= keys * heads) return;
    u64 key = warp / heads;
    u32 number = (u32)(warp % heads), head = number * n, own = set[key], first = starts[2 * own], last = starts[2 * own + 2];
    const float *mine = k + key * width + head, *value = v + key * width + head;
    float scale = 1.0f / sqrtf((float)n);
    for (u32 part = 0; part < n; part += 32 * COLUMNS) {
        float of_k[COLUMNS] = {}, of_v[COLUMNS] = {};
        for (u32 tile = first; tile < last; tile += 32) {
            u32 i = tile + lane;
            float w = 0.0f, slope = 0.0f;
            if (i < last) {
                const float *figure = figures + 3 * ((u64)i * heads + number);
                w = expf(scale * dot(q + (u64)i * width + head, mine, n) - figure[0]) / figure[1];
                slope = scale * w * (dot(g + (u64)i * width + head, value, n) - figure[2]);
            }
            u32 count = at_most(32, last - tile);
            add_rows(of_v, w, g + (u64)tile * width + head + part, count, width, n - part);
            add_rows(of_k, slope, q + (u64)tile * width + head + part, count, width, n - part);
        }
        write_row(of_k, to_k + key * width + head + part, n - part);
        write_row(of_v, to_v + key * width + head + part, n - part);
    }
}
