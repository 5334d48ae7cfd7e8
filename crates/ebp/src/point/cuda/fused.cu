// All steps of the dynamics of a network with two hidden layers, in one kernel on tensor cores.
//
// common.cu stands before this file; H1, H2, D (numbers of an element), DX (those that move, at
// most 4), KIND and LEAK (σ), SPLIT, HALF, LEAPFROG, MT and WARPS are defined by the caller.
//
// A warp carries 16 MT rows of one set through all steps without leaving its registers:
//
//   a1 = σ(W1 x + shift1)   computed in the layout of the product's left factor
//   z2 = a1 W2ᵀ + shift2    mma m16n8k8; the result stays where it is and becomes, times σ′ and w,
//   g2 = w3 σ′(z2)          the left factor of the next product: its columns (2t, 2t+1) are read
//   g1 = g2 W2              as (t, t+4), and the right factor is packed in the same order
//   ∇f = (g1 σ′(z1)) W1     z1 is computed again; lanes of a row add up by shuffles
//
// With SPLIT every factor is the sum of two TF32 numbers and a product is three: an error of single
// precision. With HALF factors are rounded to bf16, two in a register: mma m16n8k16, whose layouts fit
// each other as they are. With neither they are rounded to TF32.

#define NB (H2 / 8)
#define D4 ((D + 3) / 4 * 4)

__device__ __forceinline__ u32 tf32(float v) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v)); return r; }

__device__ __forceinline__ void mma(float *c, const u32 *a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a b for one left fragment of floats and two neighbouring right fragments.
__device__ __forceinline__ void products(float (*c)[4], const float *a, const float4 &hi, const float4 &lo) {
    u32 ah[4];
#pragma unroll
    for (int i = 0; i < 4; i++) ah[i] = tf32(a[i]);
#if SPLIT
    u32 al[4];
#pragma unroll
    for (int i = 0; i < 4; i++) al[i] = tf32(a[i] - __uint_as_float(ah[i]));
    mma(c[0], al, __float_as_uint(hi.x), __float_as_uint(hi.y));
    mma(c[1], al, __float_as_uint(hi.z), __float_as_uint(hi.w));
    mma(c[0], ah, __float_as_uint(lo.x), __float_as_uint(lo.y));
    mma(c[1], ah, __float_as_uint(lo.z), __float_as_uint(lo.w));
#endif
    mma(c[0], ah, __float_as_uint(hi.x), __float_as_uint(hi.y));
    mma(c[1], ah, __float_as_uint(hi.z), __float_as_uint(hi.w));
}

// Two numbers rounded to bf16, the first in the lower half.
__device__ __forceinline__ u32 halves(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ void mma_halves(float *c, const u32 *a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Unit j of the first layer: its weights w and its shift b; then z = w·x + b of one row. Macros:
// made functions, the same lines come out in another order of instructions than the one that was timed.
#define FIRST_UNIT(j) \
    float w[D4]; \
    _Pragma("unroll") \
    for (int q = 0; q < D4; q += 4) *(float4 *)&w[q] = *(const float4 *)&w1s[(j) * D4 + q]; \
    float b = s1[j]
#define ARGUMENT(z, x) \
    float z = b; \
    _Pragma("unroll") \
    for (int k = 0; k < D; k++) z = fmaf(w[k], x[k], z)

struct Tile { u32 row, count, set; };

// W2 in the order of right fragments, high and low parts: [k-block][pair of n-blocks][lane][4].
// With HALF pairs of numbers, once.
extern "C" __global__ void pack(const float *w2, float *packed) {
    const int size = H1 * H2;
#if HALF
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
        int which = i / (size / 2), j = i % (size / 2);
        int part = j % 4, lane = (j / 4) % 32, rest = j / 128, t = lane % 4, g = lane / 4;
        int inner = 2 * t + 8 * (part & 1), outer = 8 * (part >> 1) + g;
        float low, high;
        if (which == 0) { int o = 16 * (rest % (H2 / 16)) + outer, k = 16 * (rest / (H2 / 16)) + inner; low = w2[o * H1 + k]; high = w2[o * H1 + k + 1]; }
        else            { int k = 16 * (rest % (H1 / 16)) + outer, o = 16 * (rest / (H1 / 16)) + inner; low = w2[o * H1 + k]; high = w2[(o + 1) * H1 + k]; }
        packed[i] = __uint_as_float(halves(low, high));
    }
#else
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 2 * size; i += gridDim.x * blockDim.x) {
        int which = i / size, j = i % size;
        int part = j % 4, lane = (j / 4) % 32, rest = j / 128, t = lane % 4, g = lane / 4;
        int o, k;
        if (which == 0) { int pair = rest % (H2 / 16), kb = rest / (H2 / 16); k = 8 * kb + t + 4 * (part & 1); o = 16 * pair + 8 * (part >> 1) + g; }
        else            { int pair = rest % (H1 / 16), ob = rest / (H1 / 16); o = 8 * ob + 2 * t + (part & 1); k = 16 * pair + 8 * (part >> 1) + g; }
        float v = w2[o * H1 + k];
        float hi = __uint_as_float(tf32(v));
        packed[2 * which * size + j] = hi;
        packed[(2 * which + 1) * size + j] = __uint_as_float(tf32(v - hi));
    }
#endif
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1) steps(
    float *x, float *v, const Tile *tiles, u32 num_tiles, const float *w1, const float *packed,
    const float *w3, const float *shift1, const float *shift2, const float *shift3, int per_set1, int per_set2,
    const unsigned char *fixed, Motion m, const float *eta, const float *noise, u32 num_steps, u64 first_row,
    u32 k0, u32 k1, float *drifts, float *velocities, u64 length, float *values, float *score) {
    extern __shared__ float4 memory[];
    const int size = H1 * H2;
#if HALF
    const uint4 *forward = (const uint4 *)memory, *backward = forward + size / 8;
    float *rest = (float *)(memory + size / 4);
#else
    float4 *forward_hi = memory, *backward_hi = memory + size / 4;
#endif
#if SPLIT
    float4 *forward_lo = memory + 2 * size / 4, *backward_lo = memory + 3 * size / 4;
    float *rest = (float *)(memory + size);
#elif !HALF
    float4 *forward_lo = forward_hi, *backward_lo = backward_hi;
    float *rest = (float *)(memory + size / 2);
#endif
    float *w1s = rest;                    // [H1][D4]
    float *w3s = w1s + H1 * D4;           // [H2]
    float *own = w3s + H2;                // [WARPS][H1 + H2]
    int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, t = lane & 3, g = lane >> 2;
    for (int i = tid; i < size; i += 32 * WARPS) {
#if HALF
        ((float *)memory)[i] = packed[i];
#else
        ((float *)forward_hi)[i] = packed[i];
        ((float *)backward_hi)[i] = packed[2 * size + i];
#endif
#if SPLIT
        ((float *)forward_lo)[i] = packed[size + i];
        ((float *)backward_lo)[i] = packed[3 * size + i];
#endif
    }
    for (int i = tid; i < H1 * D4; i += 32 * WARPS) w1s[i] = i % D4 < D ? w1[i / D4 * D + i % D4] : 0.0f;
    for (int i = tid; i < H2; i += 32 * WARPS) w3s[i] = w3[i];
    __syncthreads();
    float *s1 = own + warp * (H1 + H2), *s2 = s1 + H1;

    for (u32 tile = blockIdx.x * WARPS + warp; tile < num_tiles; tile += gridDim.x * WARPS) {
        Tile here = tiles[tile];
        __syncwarp();
        for (int i = lane; i < H1; i += 32) s1[i] = shift1[(per_set1 ? (u64)here.set * H1 : 0) + i];
        for (int i = lane; i < H2; i += 32) s2[i] = shift2[(per_set2 ? (u64)here.set * H2 : 0) + i];
        __syncwarp();
        float p[MT][2][D];            // places of rows g and g + 8
        bool held[MT][2];
        float speed[MT][2];           // momentum of coordinate t
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 r = 16 * mt + 8 * h + g;
                u64 row = here.row + (r < here.count ? r : here.count - 1);
#pragma unroll
                for (int k = 0; k < D; k++) p[mt][h][k] = x[row * D + k];
                held[mt][h] = fixed && fixed[row];
                speed[mt][h] = LEAPFROG && t < DX ? v[row * DX + t] : 0.0f;
            }
        for (u32 step = 0; step <= num_steps; step++) {
            float c[MT][NB][4];
#pragma unroll
            for (int mt = 0; mt < MT; mt++)
#pragma unroll
                for (int nb = 0; nb < NB; nb++) {
                    float b0 = s2[8 * nb + 2 * t], b1 = s2[8 * nb + 2 * t + 1];
                    c[mt][nb][0] = b0; c[mt][nb][1] = b1; c[mt][nb][2] = b0; c[mt][nb][3] = b1;
                }
#if HALF
#pragma unroll 1
            for (int kb = 0; kb < H1 / 16; kb++) {
                u32 a[MT][4];
#pragma unroll
                for (int part = 0; part < 2; part++) {
                    float pair[MT][2][2];
#pragma unroll
                    for (int odd = 0; odd < 2; odd++) {
                        int j = 16 * kb + 8 * part + 2 * t + odd;
                        FIRST_UNIT(j);
#pragma unroll
                        for (int mt = 0; mt < MT; mt++)
#pragma unroll
                            for (int h = 0; h < 2; h++) {
                                ARGUMENT(z, p[mt][h]);
                                float s, cu;
                                activation(KIND, LEAK, z, pair[mt][h][odd], s, cu);
                            }
                    }
#pragma unroll
                    for (int mt = 0; mt < MT; mt++)
#pragma unroll
                        for (int h = 0; h < 2; h++) a[mt][2 * part + h] = halves(pair[mt][h][0], pair[mt][h][1]);
                }
#pragma unroll
                for (int nb = 0; nb < NB; nb += 2) {
                    uint4 b = forward[(kb * (H2 / 16) + nb / 2) * 32 + lane];
#pragma unroll
                    for (int mt = 0; mt < MT; mt++) {
                        mma_halves(c[mt][nb], a[mt], b.x, b.y);
                        mma_halves(c[mt][nb + 1], a[mt], b.z, b.w);
                    }
                }
            }
#else
#pragma unroll 2
            for (int kb = 0; kb < H1 / 8; kb++) {
                float a[MT][4];
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int j = 8 * kb + t + 4 * half;
                    FIRST_UNIT(j);
#pragma unroll
                    for (int mt = 0; mt < MT; mt++)
#pragma unroll
                        for (int h = 0; h < 2; h++) {
                            ARGUMENT(z, p[mt][h]);
                            float s, cu;
                            activation(KIND, LEAK, z, a[mt][2 * half + h], s, cu);
                        }
                }
#pragma unroll
                for (int nb = 0; nb < NB; nb += 2) {
                    int at = (kb * (H2 / 16) + nb / 2) * 32 + lane;
                    float4 hi = forward_hi[at], lo = forward_lo[at];
#pragma unroll
                    for (int mt = 0; mt < MT; mt++) products(&c[mt][nb], a[mt], hi, lo);
                }
            }
#endif
            // f at the end; g2 = w3 σ′(z2) in place.
            bool is_end = step == num_steps;
            float f[MT][2];
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                f[mt][0] = 0.0f; f[mt][1] = 0.0f;
#pragma unroll
                for (int nb = 0; nb < NB; nb++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        float w = w3s[8 * nb + 2 * t + (i & 1)], a, s, cu;
                        activation(KIND, LEAK, c[mt][nb][i], a, s, cu);
                        f[mt][i >> 1] = fmaf(w, a, f[mt][i >> 1]);
                        c[mt][nb][i] = w * s;
                    }
#if !HALF
                    // (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) → left fragment order
                    float swap = c[mt][nb][1]; c[mt][nb][1] = c[mt][nb][2]; c[mt][nb][2] = swap;
#endif
                }
            }
#if HALF
            u32 left[MT][NB / 2][4];
#pragma unroll
            for (int mt = 0; mt < MT; mt++)
#pragma unroll
                for (int nb = 0; nb < NB; nb++)
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        left[mt][nb / 2][2 * (nb & 1) + h] = halves(c[mt][nb][2 * h], c[mt][nb][2 * h + 1]);
#endif
            float d[MT][2][D];
#pragma unroll
            for (int mt = 0; mt < MT; mt++)
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int k = 0; k < D; k++) d[mt][h][k] = 0.0f;
#pragma unroll 1
            for (int pair = 0; pair < H1 / 16; pair++) {
                float e[MT][2][4];
#pragma unroll
                for (int mt = 0; mt < MT; mt++)
#pragma unroll
                    for (int i = 0; i < 8; i++) e[mt][i / 4][i % 4] = 0.0f;
#if HALF
#pragma unroll
                for (int ob = 0; ob < NB / 2; ob++) {
                    uint4 b = backward[(ob * (H1 / 16) + pair) * 32 + lane];
#pragma unroll
                    for (int mt = 0; mt < MT; mt++) {
                        mma_halves(e[mt][0], left[mt][ob], b.x, b.y);
                        mma_halves(e[mt][1], left[mt][ob], b.z, b.w);
                    }
                }
#else
#pragma unroll
                for (int ob = 0; ob < NB; ob++) {
                    int at = (ob * (H1 / 16) + pair) * 32 + lane;
                    float4 hi = backward_hi[at], lo = backward_lo[at];
#pragma unroll
                    for (int mt = 0; mt < MT; mt++) products(e[mt], c[mt][ob], hi, lo);
                }
#endif
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    int jb = part >> 1, odd = part & 1, j = 16 * pair + 8 * jb + 2 * t + odd;
                    FIRST_UNIT(j);
#pragma unroll
                    for (int mt = 0; mt < MT; mt++)
#pragma unroll
                        for (int h = 0; h < 2; h++) {
                            ARGUMENT(z, p[mt][h]);
                            float a, s, cu;
                            activation(KIND, LEAK, z, a, s, cu);
                            float q = e[mt][jb][2 * h + odd] * s;
#pragma unroll
                            for (int k = 0; k < D; k++) d[mt][h][k] = fmaf(q, w[k], d[mt][h][k]);
                        }
                }
            }
#pragma unroll
            for (int mt = 0; mt < MT; mt++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
#pragma unroll
                    for (int k = 0; k < D; k++) {
                        d[mt][h][k] += __shfl_xor_sync(~0u, d[mt][h][k], 1);
                        d[mt][h][k] += __shfl_xor_sync(~0u, d[mt][h][k], 2);
                    }
                    u32 r = 16 * mt + 8 * h + g;
                    u64 row = here.row + r;
                    bool exists = r < here.count;
                    float norm = 0.0f;
#pragma unroll
                    for (int k = 0; k < DX; k++) { d[mt][h][k] -= p[mt][h][k] * m.precision; norm = fmaf(d[mt][h][k], d[mt][h][k], norm); }
                    // This lane's coordinate, without indexing registers at run time.
                    float mine = 0.0f, place = 0.0f;
#pragma unroll
                    for (int k = 0; k < DX; k++) if (t == k) { mine = d[mt][h][k]; place = p[mt][h][k]; }
                    if (is_end) {
                        f[mt][h] += __shfl_xor_sync(~0u, f[mt][h], 1);
                        f[mt][h] += __shfl_xor_sync(~0u, f[mt][h], 2);
                        if (exists && t < DX) score[row * DX + t] = mine;
                        if (exists && t == 0) values[row] = f[mt][h] + shift3[0];
                    }
                    float drift = mine;
                    if (m.clip == 1) drift = fminf(fmaxf(drift, -m.limit), m.limit);
                    if (m.clip == 2) drift *= fminf(m.limit / sqrtf(norm), 1.0f);
                    if (held[mt][h]) drift = 0.0f;
                    float sign;
#if LEAPFROG
                    if (!held[mt][h]) {
                        if (step > 0) speed[mt][h] += 0.5f * eta[step - 1] * drift;
                        if (!is_end) {
                            speed[mt][h] += 0.5f * eta[step] * drift;
                            place = reflect(m, place + eta[step] * speed[mt][h], sign);
                            speed[mt][h] *= sign;
                        }
                    }
#else
                    if (!is_end) {
                        float s = noise[step];
                        float xi = s != 0.0f && t < DX ? normal_at(k0, k1, step, (first_row + row) * DX + t) : 0.0f;
                        float move = held[mt][h] ? 0.0f : s * xi + 0.5f * eta[step] * drift;
                        if (!held[mt][h]) place = reflect(m, place + move, sign);
                        if (exists && t < DX) {
                            drifts[step * length + row * DX + t] = drift;
                            velocities[step * length + row * DX + t] = move;
                        }
                    }
#endif
#pragma unroll
                    for (int k = 0; k < DX; k++) p[mt][h][k] = __shfl_sync(~0u, place, (lane & ~3) + k);
                }
        }
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 r = 16 * mt + 8 * h + g;
                if (r >= here.count || t >= DX) continue;
                u64 row = here.row + r;
                float place = 0.0f;
#pragma unroll
                for (int k = 0; k < DX; k++) if (t == k) place = p[mt][h][k];
                x[row * D + t] = place;
                if (LEAPFROG) v[row * DX + t] = speed[mt][h];
            }
    }
}
