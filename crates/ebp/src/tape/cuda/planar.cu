// Planar flows: a block per row of layers, a thread per draw. sums.cu stands before this file.

// What a layer's s = w·u gives: 1 + m, m, r = m/s, m′ and r′, as planar/terms.rs.
struct Terms { float one_plus_m, m, r, m_slope, r_slope; };

__device__ Terms slope_terms(float s) {
    const float shift = 0.54132485f, start = 0.63212056f;      // ln(e − 1) and m′(0) = 1 − 1/e
    // The series of r about 0.
    const float series[9] = {0.63212056f, 0.11627208f, -1.0241288e-2f, -3.8298564e-3f, 9.1686662e-4f,
                             1.6565203e-4f, -7.943086e-5f, -4.7914748e-6f, 6.5313575e-6f};
    float z = s + shift, small = expf(-fabsf(z)), share = 1.0f / (1.0f + small);
    Terms t;
    t.one_plus_m = fmaxf(z, 0.0f) + log1pf(small);
    t.m_slope = z < 0.0f ? small * share : share;
    if (fabsf(s) < 0.4f) {
        float r = 0.0f, slope = 0.0f;
        for (int k = 8; k >= 0; k--) { slope = slope * s + r; r = r * s + series[k]; }
        t.m = s * r; t.r = r; t.r_slope = slope;
        return t;
    }
    // m = ln(1 + p (eˢ − 1)) = s + ln(1 + (1 − p)(e⁻ˢ − 1)): the form without large terms
    t.m = fmaxf(s, 0.0f) + log1pf((s > 0.0f ? 1.0f - start : start) * expm1f(-fabsf(s)));
    t.r = t.m / s;
    t.r_slope = (t.m_slope - t.r) / s;
    return t;
}

// Those of all layers of a row, by the whole block.
__device__ void fill_terms(const float *layers, Terms *terms, u32 dims, u32 num_layers) {
    __syncthreads();
    for (u32 l = threadIdx.x; l < num_layers; l += blockDim.x) {
        const float *layer = layers + (u64)l * (2 * dims + 1);
        float s = 0.0f;
        for (u32 k = 0; k < dims; k++) s += layer[k] * layer[dims + k];
        terms[l] = slope_terms(s);
    }
    __syncthreads();
}

// tanh a and 1 − tanh² a, with t = e^{2|a|} − 1; from 10 on tanh is 1.
__device__ __forceinline__ void bend(float a, float &h, float &bent) {
    float length = fabsf(a);
    float t = expm1f(2.0f * (length > 10.0f ? 10.0f : length)), inverse = 1.0f / (t + 2.0f);
    h = copysignf(t * inverse, a);
    bent = 4.0f * (t + 1.0f) * inverse * inverse;
}

extern "C" __global__ void planar(const float *layers, const float *noise, float *values, float *log_density, u64 rows,
                                  u32 draws, u32 dims, u32 num_layers) {
    extern __shared__ float shared[];
    Terms *terms = (Terms *)shared;
    u32 step = 2 * dims + 1;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *own = layers + row * step * num_layers;
        fill_terms(own, terms, dims, num_layers);
        for (u32 draw = threadIdx.x; draw < draws; draw += blockDim.x) {
            u64 at = row * draws + draw;
            float *x = values + at * dims;
            float log_q = -0.9189385f * (float)dims;            // ½ log 2π
            for (u32 k = 0; k < dims; k++) { float z = noise[at * dims + k]; x[k] = z; log_q -= 0.5f * z * z; }
            for (u32 l = 0; l < num_layers; l++) {
                const float *layer = own + (u64)l * step;
                float a = layer[2 * dims], h, bent;
                for (u32 k = 0; k < dims; k++) a += layer[k] * x[k];
                bend(a, h, bent);
                log_q -= logf(h * h + bent * terms[l].one_plus_m);
                for (u32 k = 0; k < dims; k++) x[k] += terms[l].r * layer[dims + k] * h;
            }
            log_density[at] = log_q;
        }
    }
}

// ∂L/∂layers, as planar/cpu.rs. A thread keeps what it passed in `kept`, [layers (d + 2) + d] numbers a thread, a
// block's threads side by side; a warp keeps its sums in `sums`, [layers (2 d + 2)] numbers a warp.
extern "C" __global__ void planar_backward(const float *layers, const float *noise, const float *of_values,
                                           const float *of_density, float *kept, float *sums, float *gradient, u64 rows,
                                           u32 draws, u32 dims, u32 num_layers) {
    extern __shared__ float shared[];
    Terms *terms = (Terms *)shared;
    u32 step = 2 * dims + 1, each = 2 * dims + 2, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
    float *own_kept = kept + (u64)blockIdx.x * blockDim.x * (num_layers * (dims + 2) + dims) + threadIdx.x;
    float *block_sums = sums + (u64)blockIdx.x * warps * num_layers * each;
    float *own_sums = block_sums + (u64)warp * num_layers * each;
#define KEPT(item) own_kept[(u64)(item) * blockDim.x]
#define PLACE(l, k) KEPT((l) * (dims + 2) + (k))
#define ADJOINT(k) KEPT(num_layers * (dims + 2) + (k))
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *own = layers + row * step * num_layers;
        fill_terms(own, terms, dims, num_layers);
        for (u32 i = lane; i < num_layers * each; i += 32) own_sums[i] = 0.0f;
        __syncwarp();
        for (u32 first = warp * 32; first < draws; first += blockDim.x) {
            u64 at = row * draws + first + lane;
            bool is_there = first + lane < draws;
            for (u32 k = 0; k < dims; k++) {
                if (num_layers) PLACE(0, k) = is_there ? noise[at * dims + k] : 0.0f;
                ADJOINT(k) = is_there && of_values ? of_values[at * dims + k] : 0.0f;
            }
            float of_q = is_there && of_density ? of_density[at] : 0.0f;
            for (u32 l = 0; l < num_layers; l++) {
                const float *layer = own + (u64)l * step;
                float a = layer[2 * dims], h, bent;
                for (u32 k = 0; k < dims; k++) a += layer[k] * PLACE(l, k);
                bend(a, h, bent);
                PLACE(l, dims) = h; PLACE(l, dims + 1) = bent;
                if (l + 1 < num_layers)
                    for (u32 k = 0; k < dims; k++) PLACE(l + 1, k) = PLACE(l, k) + terms[l].r * layer[dims + k] * h;
            }
            for (u32 l = num_layers; l-- > 0;) {
                const float *layer = own + (u64)l * step;
                Terms t = terms[l];
                float h = PLACE(l, dims), bent = PLACE(l, dims + 1), along = 0.0f;
                for (u32 k = 0; k < dims; k++) along += layer[dims + k] * ADJOINT(k);
                float psi = -of_q / (h * h + bent * t.one_plus_m);
                float a = bent * (t.r * along - 2.0f * h * t.m * psi);
                float of_a = warp_sum(a), of_psi = warp_sum(bent * psi);
                float *to = own_sums + (u64)l * each;
                if (lane == 0) { to[0] += of_a; to[1] += of_psi; }
                for (u32 k = 0; k < dims; k++) {
                    float adjoint = ADJOINT(k);
                    float of_place = warp_sum(a * PLACE(l, k)), of_adjoint = warp_sum(h * adjoint);
                    if (lane == 0) { to[2 + k] += of_place; to[2 + dims + k] += of_adjoint; }
                    ADJOINT(k) = adjoint + a * layer[k];
                }
            }
        }
        __syncthreads();
        for (u32 l = threadIdx.x; l < num_layers; l += blockDim.x) {
            const float *layer = own + (u64)l * step;
            float *to = gradient + (row * num_layers + l) * step, *total = block_sums + (u64)l * each;
            for (u32 i = 0; i < each; i++)
                for (u32 w = 1; w < warps; w++) total[i] += block_sums[((u64)w * num_layers + l) * each + i];
            float along = 0.0f;
            for (u32 k = 0; k < dims; k++) along += layer[dims + k] * total[2 + dims + k];
            float s = terms[l].m_slope * total[1] + terms[l].r_slope * along;
            for (u32 k = 0; k < dims; k++) {
                to[k] = total[2 + k] + s * layer[dims + k];
                to[dims + k] = terms[l].r * total[2 + dims + k] + s * layer[k];
            }
            to[2 * dims] = total[0];
        }
        // The next row's sums begin at zero, where these are still read.
        __syncthreads();
    }
#undef KEPT
#undef PLACE
#undef ADJOINT
}
