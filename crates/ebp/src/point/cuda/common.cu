// What stands before every other source: activations, random numbers, walls.
//
// Random numbers repeat the arithmetic of rng.rs bit by bit: every multiplication and addition is
// rounded on its own (never fused).

typedef unsigned int u32;
typedef unsigned long long u64;

// Every i below count, shared out among all threads of the grid.
#define GRID(i, count) \
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += (u64)gridDim.x * blockDim.x)

// i = row n + column. A 64-bit division costs more than everything else that is done to an entry.
__device__ __forceinline__ void place(u64 i, u32 n, u64 &row, u32 &column) {
    if (i >> 32) { row = i / n; column = (u32)(i % n); return; }
    u32 j = (u32)i, r = j / n;
    row = r; column = j - r * n;
}

// Activations: 0 identity, 1 rectifier with a leak, 2 SiLU, 3 softplus, 4 tanh.
__device__ __forceinline__ void activation(int kind, float leak, float z, float &a, float &s, float &c) {
    c = 0.0f;
    if (kind == 0) { a = z; s = 1.0f; return; }
#if __CUDA_ARCH__ >= 800
    // One instruction that, unlike fmaxf, lets NaN pass.
    if (kind == 1 && leak == 0.0f) {
        asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(a) : "f"(z));
        s = z > 0.0f ? 1.0f : 0.0f;
        return;
    }
#endif
    if (kind == 1) { s = z > 0.0f ? 1.0f : leak; a = z > 0.0f ? z : leak * z; return; }
    if (kind == 4) { a = tanhf(z); s = 1.0f - a * a; c = -2.0f * a * s; return; }
    float e = __expf(-fabsf(z));
    float r = 1.0f / (1.0f + e);
    float p = z >= 0.0f ? r : e * r;          // sigmoid(z)
    float q = z >= 0.0f ? e * r : r;          // sigmoid(-z)
    if (kind == 2) {
        a = z * p; s = p * (1.0f + z * q); c = p * q * (2.0f + z * (1.0f - 2.0f * p));
    } else {
        a = fmaxf(z, 0.0f) + log1pf(e); s = p; c = p * q;
    }
}

// ---------------------------------------------------------------- random numbers, as rng.rs

__device__ __forceinline__ void philox(u32 k0, u32 k1, u32 &a, u32 &b, u32 &c, u32 &d) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        if (round) { k0 += 0x9e3779b9u; k1 += 0xbb67ae85u; }
        u32 h0 = __umulhi(a, 0xd2511f53u), l0 = a * 0xd2511f53u;
        u32 h1 = __umulhi(c, 0xcd9e8d57u), l1 = c * 0xcd9e8d57u;
        a = h1 ^ b ^ k0; b = l1; c = h0 ^ d ^ k1; d = l0;
    }
}
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }

__device__ __forceinline__ float ln_unit(u32 word) {
    float u = mul((float)((word >> 8) + 1), 5.9604644775390625e-8f);
    int bits = __float_as_int(u);
    int exponent = (bits - 0x3f3504f3) >> 23;
    float m = __int_as_float(bits - (exponent << 23));
    float t = __fdiv_rn(add(m, -1.0f), add(m, 1.0f));
    float t2 = mul(t, t);
    float series = add(2.0f, mul(t2, add(2.0f / 3.0f, mul(t2, add(2.0f / 5.0f, mul(t2, add(2.0f / 7.0f, mul(t2, 2.0f / 9.0f))))))));
    return add(mul((float)exponent, 0.693147180559945309417f), mul(t, series));
}

__device__ __forceinline__ void sin_cos_turn(u32 word, float &sine, float &cosine) {
    int v = (int)(word >> 8);
    int quarter = (v + (1 << 21)) >> 22;
    float a = mul((float)(v - (quarter << 22)), 6.28318530717958647692f / 16777216.0f);
    float a2 = mul(a, a);
    float s = mul(a, add(1.0f, mul(a2, add(-1.0f / 6.0f, mul(a2, add(1.0f / 120.0f, mul(a2, -1.0f / 5040.0f)))))));
    float c = add(1.0f, mul(a2, add(-0.5f, mul(a2, add(1.0f / 24.0f, mul(a2, add(-1.0f / 720.0f, mul(a2, 1.0f / 40320.0f))))))));
    if (quarter & 1) { float swap = s; s = c; c = swap; }
    sine = __int_as_float(__float_as_int(s) ^ (((quarter >> 1) & 1) << 31));
    cosine = __int_as_float(__float_as_int(c) ^ ((((quarter + 1) >> 1) & 1) << 31));
}

// The standard normal at (step, index) of the stream with this key.
__device__ float normal_at(u32 k0, u32 k1, u32 step, u64 index) {
    u64 group = index / 64; u32 within = (u32)(index % 64);
    u32 word = within / 16, lane = within % 16;
    u64 block = group * 16 + lane;
    u32 a = (u32)block, b = (u32)(block >> 32), c = step, d = 0;
    philox(k0, k1, a, b, c, d);
    u32 first = word < 2 ? a : c, second = word < 2 ? b : d;
    float radius = __fsqrt_rn(mul(-2.0f, ln_unit(first)));
    float sine, cosine;
    sin_cos_turn(second, sine, cosine);
    return mul(radius, (word & 1) ? sine : cosine);
}

struct Motion {
    int clip;            // 0 off, 1 elementwise, 2 norm
    float limit;
    float precision;     // 1/s0², 0 for none
    int bounded;
    float low, high;
};

__device__ __forceinline__ float reflect(const Motion &m, float x, float &sign) {
    sign = 1.0f;
    if (!m.bounded) return x;
    float place;
    if (x < m.low) place = 2.0f * m.low - x;
    else if (x > m.high) place = 2.0f * m.high - x;
    else return x;
    sign = -1.0f;
    if (place < m.low) return m.low;
    if (place > m.high) return m.high;
    return place;
}
