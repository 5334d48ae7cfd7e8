// The rows that attain a maximum: found, gathered, and given back their gradients. kernels.cu stands before this
// file.

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

// The way back of gather_marked: rows that are not marked get zeros.
extern "C" __global__ void spread_marked(const float *in, const u32 *starts, const u32 *rank, const u32 *places,
                                         float *out, u32 d) {
    u32 s = blockIdx.x;
    for (u32 row = starts[s] + threadIdx.x; row < starts[s + 1]; row += blockDim.x)
        for (u32 c = 0; c < d; c++)
            out[(u64)row * d + c] = rank[row] ? in[(u64)(places[s] + rank[row] - 1) * d + c] : 0.0f;
}
