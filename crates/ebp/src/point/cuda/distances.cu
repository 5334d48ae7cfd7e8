// Distances between two sets of points, a pair of sets at a time. DIM coordinates a point are
// compiled in. common.cu stands before this file.

#define THREADS 256
#define OWN 4            // points a thread carries
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)

// jobs: [from, n, to, m, out] each, in points. out[i] = min_j ‖from_i − to_j‖², in f64 and rounded
// after every multiplication and addition as the CPU does: the same bits.
extern "C" __global__ void nearest(const double *points, const u64 *jobs, double *out) {
    const u64 *job = jobs + 5 * (u64)blockIdx.x;
    u32 n = (u32)job[1], m = (u32)job[3], first = blockIdx.y * THREADS * OWN;
    if (first >= n) return;
    const double *from = points + job[0] * DIM, *to = points + job[2] * DIM;
    out += job[4];
    __shared__ double tile[THREADS * DIM];
    double x[OWN][DIM], best[OWN];
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        u32 i = first + o * THREADS + threadIdx.x, row = i < n ? i : n - 1;
#pragma unroll
        for (int k = 0; k < DIM; k++) x[o][k] = from[(u64)row * DIM + k];
        best[o] = INFINITE;
    }
    for (u32 begin = 0; begin < m; begin += THREADS) {
        u32 count = m - begin < THREADS ? m - begin : THREADS;
        __syncthreads();
        for (u32 k = threadIdx.x; k < count * DIM; k += THREADS) tile[k] = to[(u64)begin * DIM + k];
        __syncthreads();
        for (u32 j = 0; j < count; j++) {
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                double sum = 0.0;
#pragma unroll
                for (int k = 0; k < DIM; k++) {
                    double d = __dsub_rn(tile[j * DIM + k], x[o][k]);
                    sum = __dadd_rn(sum, __dmul_rn(d, d));
                }
                best[o] = sum < best[o] ? sum : best[o];
            }
        }
    }
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        u32 i = first + o * THREADS + threadIdx.x;
        if (i < n) out[i] = best[o];
    }
}

// The annealed soft matching of metric/distance/approxmatch.rs, a block for each pair of sets.
// jobs: [x, n, y, m, wide, narrow] each. wide holds mass [n] and room [m]; narrow holds a [n],
// room [m] and b [m]. Sums of a tile are f32, sums of tiles f64.
#define LEVELS 9
#define FLOOR 1e-9
extern "C" __global__ void soft_match(const float *points, const u64 *jobs, double *wide, float *narrow,
                                      double *out, int squared) {
    const u64 *job = jobs + 6 * (u64)blockIdx.x;
    u32 n = (u32)job[1], m = (u32)job[3], t = threadIdx.x;
    const float *x = points + job[0] * DIM, *y = points + job[2] * DIM;
    double *mass = wide + job[4], *room = mass + n;
    float *a = narrow + job[5], *r = a + n, *b = r + m;
    double larger = n > m ? (double)n : (double)m, cost = 0.0;
    for (u32 i = t; i < n; i += THREADS) { mass[i] = larger / n; a[i] = 0.0f; }
    for (u32 j = t; j < m; j += THREADS) { room[j] = larger / m; r[j] = (float)room[j]; b[j] = 0.0f; }
    __shared__ float place[THREADS * DIM], first[THREADS], second[THREADS];
    __shared__ double sums[THREADS];
    float level = 16384.0f;
    for (int number = 0; number <= LEVELS; number++) {
        bool end = number == LEVELS;
        if (number > 0 && !end) level *= 0.25f;
        // Rows: what the last level took, and how far this one reaches.
        for (u32 start = 0; start < n; start += THREADS * OWN) {
            float p[OWN][DIM];
            double matched[OWN], paid[OWN], reach[OWN];
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                u32 i = start + o * THREADS + t, row = i < n ? i : n - 1;
#pragma unroll
                for (int k = 0; k < DIM; k++) p[o][k] = x[(u64)row * DIM + k];
                matched[o] = paid[o] = reach[o] = 0.0;
            }
            for (u32 begin = 0; begin < m; begin += THREADS) {
                u32 count = m - begin < THREADS ? m - begin : THREADS;
                __syncthreads();
                for (u32 k = t; k < count * DIM; k += THREADS) place[k] = y[(u64)begin * DIM + k];
                if (t < count) { first[t] = r[begin + t]; second[t] = b[begin + t]; }
                __syncthreads();
                float part[OWN][3] = {};
                for (u32 j = 0; j < count; j++) {
                    float capacity = first[j], ratio = second[j];
#pragma unroll
                    for (int o = 0; o < OWN; o++) {
                        float d2 = 0.0f;
#pragma unroll
                        for (int k = 0; k < DIM; k++) { float d = place[j * DIM + k] - p[o][k]; d2 = fmaf(d, d, d2); }
                        float kernel = expf(-level * d2);
                        float square = kernel * kernel;
                        float weight = (end ? kernel : square * square) * ratio;
                        part[o][0] += weight;
                        part[o][1] = fmaf(weight, squared ? d2 : sqrtf(d2), part[o][1]);
                        part[o][2] = fmaf(kernel, capacity, part[o][2]);
                    }
                }
#pragma unroll
                for (int o = 0; o < OWN; o++) {
                    matched[o] += part[o][0]; paid[o] += part[o][1]; reach[o] += part[o][2];
                }
            }
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                u32 i = start + o * THREADS + t;
                if (i >= n) continue;
                double ratio = a[i], left = mass[i] - ratio * matched[o];
                cost += ratio * paid[o];
                mass[i] = left > 0.0 ? left : 0.0;
                a[i] = (float)(mass[i] / (reach[o] + FLOOR));
            }
        }
        if (end) break;
        __syncthreads();
        // Columns: what all rows ask of them, and what they give.
        for (u32 start = 0; start < m; start += THREADS * OWN) {
            float p[OWN][DIM];
            double taken[OWN];
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                u32 j = start + o * THREADS + t, column = j < m ? j : m - 1;
#pragma unroll
                for (int k = 0; k < DIM; k++) p[o][k] = y[(u64)column * DIM + k];
                taken[o] = 0.0;
            }
            for (u32 begin = 0; begin < n; begin += THREADS) {
                u32 count = n - begin < THREADS ? n - begin : THREADS;
                __syncthreads();
                for (u32 k = t; k < count * DIM; k += THREADS) place[k] = x[(u64)begin * DIM + k];
                if (t < count) first[t] = a[begin + t];
                __syncthreads();
                float part[OWN] = {};
                for (u32 i = 0; i < count; i++) {
                    float ratio = first[i];
#pragma unroll
                    for (int o = 0; o < OWN; o++) {
                        float d2 = 0.0f;
#pragma unroll
                        for (int k = 0; k < DIM; k++) { float d = p[o][k] - place[i * DIM + k]; d2 = fmaf(d, d, d2); }
                        part[o] = fmaf(ratio, expf(-level * d2), part[o]);
                    }
                }
#pragma unroll
                for (int o = 0; o < OWN; o++) taken[o] += part[o];
            }
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                u32 j = start + o * THREADS + t;
                if (j >= m) continue;
                double capacity = room[j], s = taken[o] * capacity, share = capacity / (s + FLOOR);
                double left = capacity - s;
                b[j] = (float)((share < 1.0 ? share : 1.0) * capacity);
                room[j] = left > 0.0 ? left : 0.0;
                r[j] = (float)room[j];
            }
        }
        __syncthreads();
    }
    sums[t] = cost;
    __syncthreads();
    for (int o = THREADS / 2; o > 0; o >>= 1) {
        if (t < o) sums[t] += sums[t + o];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0] / larger;
}
