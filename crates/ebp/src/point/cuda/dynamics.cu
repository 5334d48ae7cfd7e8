// Langevin and leapfrog steps, and the way back through them. kernels.cu stands before this file.
//
// Step sizes are read from memory: they may be the result of other kernels.

// u = ∇f − x/s0² → score; g = clip(u), 0 where fixed. x and gradient are [rows, d], the rest [rows, dx].
__device__ __forceinline__ void drift(const float *x, const float *gradient, const unsigned char *fixed, const Motion &m,
                      u64 row, u32 d, u32 dx, float *score, float *g) {
    float norm = 0.0f;
    for (u32 k = 0; k < dx; k++) {
        float u = gradient[row * d + k] - x[row * d + k] * m.precision;
        if (score) score[row * dx + k] = u;
        norm += u * u;
    }
    float scale = m.clip == 2 ? fminf(m.limit / sqrtf(norm), 1.0f) : 1.0f;
    bool held = fixed && fixed[row];
    for (u32 k = 0; k < dx; k++) {
        float u = gradient[row * d + k] - x[row * d + k] * m.precision;
        if (m.clip == 1) u = fminf(fmaxf(u, -m.limit), m.limit);
        g[row * dx + k] = held ? 0.0f : u * scale;
    }
}

// Only the drift: score and g.
extern "C" __global__ void drift_only(const float *x, const float *gradient, const unsigned char *fixed, Motion m,
                                      float *score, float *g, u64 rows, u32 d, u32 dx) {
    GRID(row, rows) drift(x, gradient, fixed, m, row, d, dx, score, g);
}

// v = s ξ + (η/2) g,  x ← reflect(x + v). Keeps g and v of the step, and ∇u where asked.
extern "C" __global__ void langevin_step(float *x, const float *gradient, const unsigned char *fixed, Motion m,
                                         float *score, float *g, float *v, u64 rows, u32 d, u32 dx, u64 first_row,
                                         const float *step_size, float noise, u32 step, u32 k0, u32 k1) {
    float eta = *step_size;
    GRID(row, rows) {
        drift(x, gradient, fixed, m, row, d, dx, score, g);
        bool held = fixed && fixed[row];
        for (u32 k = 0; k < dx; k++) {
            float xi = noise != 0.0f ? normal_at(k0, k1, step, (first_row + row) * dx + k) : 0.0f;
            float move = held ? 0.0f : noise * xi + 0.5f * eta * g[row * dx + k];
            v[row * dx + k] = move;
            float sign;
            if (!held) x[row * d + k] = reflect(m, x[row * d + k] + move, sign);
        }
    }
}

// The derivative of `reflect`.
__device__ __forceinline__ float reflect_slope(const Motion &m, float x) {
    if (!m.bounded) return 1.0f;
    float place;
    if (x < m.low) place = 2.0f * m.low - x;
    else if (x > m.high) place = 2.0f * m.high - x;
    else return 1.0f;
    return place < m.low || place > m.high ? 0.0f : -1.0f;
}

// Back through a Langevin step's move, a = dL/dx' and push = dL/dv:  a <- R' a,  push = a + 2 κ v
extern "C" __global__ void langevin_back(const float *x, const float *v, const unsigned char *fixed, Motion m,
                                         const float *kinetic, float *adjoint, float *push, u64 rows, u32 d, u32 dx) {
    GRID(row, rows) {
        bool held = fixed && fixed[row];
        for (u32 k = 0; k < dx; k++) {
            u64 i = row * dx + k;
            float a = adjoint[i] * (held ? 1.0f : reflect_slope(m, x[row * d + k] + v[i]));
            adjoint[i] = a;
            push[i] = a + (kinetic ? 2.0f * kinetic[row] * v[i] : 0.0f);
        }
    }
}

// Back through a leapfrog step's move, a = dL/dx' and pull = dL/dv:
//   a <- R' a,  dL/dη = <v, a>,  pull <- ± pull + η a  (− where a wall turned it).  One part per block.
extern "C" __global__ void leapfrog_back(const float *x, const float *v, const unsigned char *fixed, Motion m,
                                         float *adjoint, float *pull, double *parts, u64 rows, u32 d, u32 dx,
                                         const float *step_size) {
    float eta = *step_size;
    double along = 0.0;
    GRID(row, rows) {
        if (fixed && fixed[row]) continue;
        for (u32 k = 0; k < dx; k++) {
            u64 i = row * dx + k;
            float slope = reflect_slope(m, x[row * d + k] + eta * v[i]), a = adjoint[i] * slope;
            adjoint[i] = a;
            along += (double)(v[i] * a);
            pull[i] = (slope < 1.0f ? -pull[i] : pull[i]) + eta * a;
        }
    }
    sum_block(along, parts + blockIdx.x);
}

// Back through a kick v <- v + c g, g = clip(u), but for the network's Hessian; c is half of the step that
// begins here and half of the one that ended, where there is one:
//   <g, push> to `parts`, one per block;  w = J_clipᵀ c push;  a <- a − w/s0²
// w goes to `direction` [rows, d], with zeros at locations.
extern "C" __global__ void kick_back(const float *u, const float *g, const unsigned char *fixed, Motion m,
                                     const float *push, float *adjoint, float *direction, double *parts,
                                     u64 rows, u32 d, u32 dx, const float *begun, const float *ended) {
    float scale = (begun ? 0.5f * *begun : 0.0f) + (ended ? 0.5f * *ended : 0.0f);
    double along_g = 0.0;
    GRID(row, rows) {
        bool held = fixed && fixed[row];
        float *w = direction + row * d;
        float norm = 0.0f, along = 0.0f;
        for (u32 k = 0; k < dx; k++) {
            u64 i = row * dx + k;
            along_g += (double)(g[i] * push[i]);
            w[k] = held || (m.clip == 1 && fabsf(u[i]) >= m.limit) ? 0.0f : scale * push[i];
            norm = fmaf(u[i], u[i], norm);
            along = fmaf(w[k], u[i], along);
        }
        for (u32 k = dx; k < d; k++) w[k] = 0.0f;
        // c u/|u| has the symmetric derivative c/|u| (I − u uᵀ/|u|²).
        float length = sqrtf(norm);
        bool is_shortened = m.clip == 2 && length > m.limit;
        for (u32 k = 0; k < dx; k++) {
            u64 i = row * dx + k;
            if (is_shortened) w[k] = (w[k] - along / norm * u[i]) * (m.limit / length);
            adjoint[i] -= m.precision * w[k];
        }
    }
    sum_block(along_g, parts + blockIdx.x);
}

// adjoint[r, k] += term[r, k], k < dx; terms have d numbers a row.
extern "C" __global__ void add_values(const float *term, float *adjoint, u64 rows, u32 d, u32 dx) {
    GRID(i, rows * dx) {
        u64 row; u32 k;
        place(i, dx, row, k);
        adjoint[i] += term[row * d + k];
    }
}

// v ← v + (η/2) g(x) for the step that ends here and for the one that begins here, which then
// moves: x ← reflect(x + η v), v turned at a wall. A null size is no step. Keeps ∇u and the v that
// moves, where asked.
extern "C" __global__ void leapfrog_step(float *x, float *v, const float *gradient, const unsigned char *fixed,
                                         Motion m, float *score, float *g, float *halfway, u64 rows, u32 d, u32 dx,
                                         const float *end_size, const float *begin_size) {
    float ended = end_size ? *end_size : 0.0f, begun = begin_size ? *begin_size : 0.0f;
    GRID(row, rows) {
        drift(x, gradient, fixed, m, row, d, dx, score, g);
        if (fixed && fixed[row]) continue;
        for (u32 k = 0; k < dx; k++) {
            float w = v[row * dx + k] + 0.5f * ended * g[row * dx + k], sign = 1.0f;
            if (begin_size) {
                w += 0.5f * begun * g[row * dx + k];
                if (halfway) halfway[row * dx + k] = w;
                x[row * d + k] = reflect(m, x[row * d + k] + begun * w, sign);
                w *= sign;
            }
            v[row * dx + k] = w;
        }
    }
}

// Momenta of fixed elements do not count: out = v where it moves, else 0.
extern "C" __global__ void moving(const float *v, const unsigned char *fixed, float *out, u64 rows, u32 dx) {
    GRID(i, rows * dx) out[i] = fixed && fixed[i / dx] ? 0.0f : v[i];
}

// out[row] = Σ_t ‖v_t‖², v being [steps, rows, dx]
extern "C" __global__ void element_squares(const float *v, float *out, u64 rows, u32 dx, u32 steps) {
    GRID(row, rows) {
        float sum = 0.0f;
        for (u32 t = 0; t < steps; t++)
            for (u32 k = 0; k < dx; k++) { float w = v[(t * rows + row) * dx + k]; sum = fmaf(w, w, sum); }
        out[row] = sum;
    }
}

// out[row] = Σ_t scales[t]² ‖ξ_t‖² with the ξ of `langevin_step`, 0 for fixed rows.
extern "C" __global__ void noise_squares(float *out, const unsigned char *fixed, const float *scales, u64 rows, u32 dx,
                                         u32 steps, u32 k0, u32 k1) {
    GRID(row, rows) {
        float sum = 0.0f;
        for (u32 t = 0; t < steps && !(fixed && fixed[row]); t++) {
            float square = 0.0f;
            for (u32 k = 0; k < dx; k++) { float xi = normal_at(k0, k1, t, row * dx + k); square = fmaf(xi, xi, square); }
            sum += scales[t] * scales[t] * square;
        }
        out[row] = sum;
    }
}

// out[t] += ½ Σ kicks[t] (+ ½ Σ kicks[t + 1] + Σ moves[t], for leapfrog), each a sum over `parts` parts: the
// gradient of step size t. A block of 256 per step.
extern "C" __global__ void step_size_sums(const double *kicks, const double *moves, double *out, u32 parts) {
    u64 t = blockIdx.x;
    double sum = 0.0, total;
    for (u32 i = threadIdx.x; i < parts; i += 256) {
        sum += 0.5 * kicks[t * parts + i];
        if (moves) sum += 0.5 * kicks[(t + 1) * parts + i] + moves[t * parts + i];
    }
    sum_block(sum, &total);
    if (threadIdx.x == 0) out[t] += total;
}

extern "C" __global__ void to_float(const double *in, float *out, u64 count) { GRID(i, count) out[i] = (float)in[i]; }
