// Convolutions channel by channel. Rows are places of a grid, set after set; threads next to each other have
// channels next to each other. sums.cu stands before this file.

// Places of a row that a thread works on.
#define STRIP 4

// Where a window moves.
struct Window { u32 width, height, out_width, out_height, side, stride; };

// y of `STRIP` places of a row, for a side that the compiler knows and a stride of 1.
template <int SIDE>
__device__ __forceinline__ void strip(const float *x, const float *w, float *out, const Window &at, u32 channels,
                                      u32 row, u32 first, int turned) {
    const int reach = SIDE / 2;
    float sums[STRIP] = {};
#pragma unroll
    for (int down = 0; down < SIDE; down++) {
        int from = (int)row + down - reach;
        if (from < 0 || from >= (int)at.height) continue;
        float near[STRIP + SIDE - 1];
#pragma unroll
        for (int i = 0; i < STRIP + SIDE - 1; i++) {
            int column = (int)first + i - reach;
            near[i] = column >= 0 && column < (int)at.width ? x[((u64)from * at.width + column) * channels] : 0.0f;
        }
#pragma unroll
        for (int across = 0; across < SIDE; across++) {
            int number = down * SIDE + across;
            float weight = w[(u64)(turned ? SIDE * SIDE - 1 - number : number) * channels];
#pragma unroll
            for (int i = 0; i < STRIP; i++) sums[i] = fmaf(weight, near[i + across], sums[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        if (first + i < at.out_width) out[((u64)row * at.out_width + first + i) * channels] = sums[i];
}

// The same for any side and stride.
__device__ __forceinline__ void any_strip(const float *x, const float *w, float *out, const Window &at, u32 channels,
                                          u32 row, u32 first, int turned) {
    int reach = (int)at.side / 2, last = (int)(at.side * at.side) - 1;
    for (u32 i = first; i < first + STRIP && i < at.out_width; i++) {
        float sum = 0.0f;
        for (int down = 0; down < (int)at.side; down++) {
            int from = (int)(row * at.stride) + down - reach;
            if (from < 0 || from >= (int)at.height) continue;
            for (int across = 0; across < (int)at.side; across++) {
                int column = (int)(i * at.stride) + across - reach;
                if (column < 0 || column >= (int)at.width) continue;
                int number = down * (int)at.side + across;
                float weight = w[(u64)(turned ? last - number : number) * channels];
                sum = fmaf(weight, x[((u64)from * at.width + column) * channels], sum);
            }
        }
        out[((u64)row * at.out_width + i) * channels] = sum;
    }
}

// y[i, j, c] = Σ w[a, b, c] x[s i + a − r, s j + b − r, c]; `turned` takes the windows turned around. `count` is of
// sets · rows · strips · channels.
extern "C" __global__ void convolve(const float *x, const float *w, float *out, u64 count, u32 channels, u32 width,
                                    u32 height, u32 out_width, u32 out_height, u32 side, u32 stride, int turned) {
    Window at = {width, height, out_width, out_height, side, stride};
    u32 strips = (out_width + STRIP - 1) / STRIP;
    GRID(i, count) {
        u64 rest, line; u32 c, number, row;
        place(i, channels, rest, c);
        place(rest, strips, line, number);
        place(line, out_height, rest, row);
        const float *own = x + rest * width * height * channels + c;
        float *to = out + rest * out_width * out_height * channels + c;
        u32 first = number * STRIP;
        if (stride > 1) { any_strip(own, w + c, to, at, channels, row, first, turned); continue; }
        switch (side) {
            case 3: strip<3>(own, w + c, to, at, channels, row, first, turned); break;
            case 5: strip<5>(own, w + c, to, at, channels, row, first, turned); break;
            case 7: strip<7>(own, w + c, to, at, channels, row, first, turned); break;
            case 9: strip<9>(own, w + c, to, at, channels, row, first, turned); break;
            default: any_strip(own, w + c, to, at, channels, row, first, turned);
        }
    }
}

// The transpose for a stride above 1: what every place of the coarser grid (out_…) puts on this one. `count` is of
// sets · places · channels of the finer grid.
extern "C" __global__ void convolve_transposed(const float *y, const float *w, float *out, u64 count, u32 channels,
                                               u32 width, u32 height, u32 out_width, u32 out_height, u32 side, u32 stride) {
    u32 reach = side / 2;
    GRID(i, count) {
        u64 rest, set; u32 c, at;
        place(i, channels, rest, c);
        place(rest, width * height, set, at);
        u32 row = at / width, column = at - row * width;
        const float *own = y + set * out_width * out_height * channels + c;
        float sum = 0.0f;
        for (u32 down = 0; down < side; down++) {
            // s i + a − r = row
            u32 above = row + reach - down;
            if (row + reach < down || above % stride || above / stride >= out_height) continue;
            for (u32 across = 0; across < side; across++) {
                u32 left = column + reach - across;
                if (column + reach < across || left % stride || left / stride >= out_width) continue;
                u64 from = (u64)(above / stride) * out_width + left / stride;
                sum = fmaf(w[(u64)(down * side + across) * channels + c], own[from * channels], sum);
            }
        }
        out[i] = sum;
    }
}

// Lines that the threads of a block share, and numbers of a window's row at most.
#define LINES 8
#define MOST_SIDE 15

// Σ over places of a line of y x, for the numbers of one row of the windows, for a side that the compiler knows and a
// stride of 1: what a strip of places needs of x is read once.
template <int SIDE>
__device__ __forceinline__ void line_sums(const float *near, const float *own, float *sums, u32 channels, u32 width) {
    const int reach = SIDE / 2;
    for (int first = 0; first < (int)width; first += STRIP) {
        float x[STRIP + SIDE - 1], g[STRIP];
#pragma unroll
        for (int i = 0; i < STRIP + SIDE - 1; i++) {
            int column = first + i - reach;
            x[i] = column >= 0 && column < (int)width ? near[(u64)column * channels] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < STRIP; i++) g[i] = first + i < (int)width ? own[(u64)(first + i) * channels] : 0.0f;
#pragma unroll
        for (int across = 0; across < SIDE; across++)
#pragma unroll
            for (int i = 0; i < STRIP; i++) sums[across] = fmaf(g[i], x[i + across], sums[across]);
    }
}

// The same for any side and stride.
__device__ __forceinline__ void any_line_sums(const float *near, const float *own, float *sums, u32 channels,
                                              u32 width, u32 out_width, u32 side, u32 stride) {
    int reach = (int)side / 2;
    for (u32 j = 0; j < out_width; j++) {
        float g = own[(u64)j * channels];
        int left = (int)(j * stride) - reach;
#pragma unroll
        for (int across = 0; across < MOST_SIDE; across++) {
            int column = left + across;
            if (across < (int)side && column >= 0 && column < (int)width)
                sums[across] = fmaf(g, near[(u64)column * channels], sums[across]);
        }
    }
}

// Σ over places of y x for one row of the windows (z) and 32 channels (y), over the lines of a part (x): parts
// `[parts, k², channels]`. A line is a row of a picture. Threads x are channels, threads y share the lines.
extern "C" __global__ void convolve_weights(const float *x, const float *y, double *parts, u64 lines, u64 lines_per_part,
                                            u32 channels, u32 width, u32 height, u32 out_width, u32 out_height, u32 side,
                                            u32 stride) {
    __shared__ float shared[LINES][MOST_SIDE][32];
    u32 c = blockIdx.y * 32 + threadIdx.x, down = blockIdx.z;
    float sums[MOST_SIDE] = {};
    u64 first = blockIdx.x * lines_per_part, last = first + lines_per_part < lines ? first + lines_per_part : lines;
    for (u64 line = first + threadIdx.y; line < last && c < channels; line += LINES) {
        u64 set; u32 row;
        place(line, out_height, set, row);
        int from = (int)(row * stride + down) - (int)side / 2;
        if (from < 0 || from >= (int)height) continue;
        const float *near = x + (set * height + from) * width * channels + c;
        const float *own = y + line * out_width * channels + c;
        if (stride > 1) { any_line_sums(near, own, sums, channels, width, out_width, side, stride); continue; }
        switch (side) {
            case 3: line_sums<3>(near, own, sums, channels, width); break;
            case 5: line_sums<5>(near, own, sums, channels, width); break;
            case 7: line_sums<7>(near, own, sums, channels, width); break;
            case 9: line_sums<9>(near, own, sums, channels, width); break;
            default: any_line_sums(near, own, sums, channels, width, out_width, side, stride);
        }
    }
#pragma unroll
    for (int i = 0; i < MOST_SIDE; i++) shared[threadIdx.y][i][threadIdx.x] = sums[i];
    __syncthreads();
    if (c >= channels) return;
    for (u32 across = threadIdx.y; across < side; across += LINES) {
        double sum = 0.0;
        for (u32 i = 0; i < LINES; i++) sum += shared[i][across][threadIdx.x];
        parts[((u64)blockIdx.x * side * side + down * side + across) * channels + c] = sum;
    }
}
