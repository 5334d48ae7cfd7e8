// Functions of single entries, rows and columns of the tape.

// y = m(x): 0 a x + b, 1 eˣ, 2 SiLU, 3 rectifier, 4 square, 5 tanh, 6 clamp to [a, b], 7 log(1 + eˣ),
// 8 log x.
extern "C" __global__ void map_entries(const float *x, float *out, u64 count, int kind, float a, float b) {
    GRID(i, count) {
        float v = x[i], y;
        switch (kind) {
            case 0: y = a * v + b; break;
            case 1: y = expf(v); break;
            case 2: y = v / (1.0f + expf(-v)); break;
            case 3: y = v < 0.0f ? 0.0f : v; break;
            case 4: y = v * v; break;
            case 5: y = tanhf(v); break;
            case 7: y = (v < 0.0f ? 0.0f : v) + log1pf(expf(-fabsf(v))); break;
            case 8: y = logf(v); break;
            default: y = v < a ? a : v > b ? b : v;
        }
        out[i] = y;
    }
}

// out = g m′(x)
extern "C" __global__ void map_entries_backward(const float *x, const float *g, float *out, u64 count, int kind, float a,
                                                float b) {
    GRID(i, count) {
        float v = x[i], slope;
        switch (kind) {
            case 0: slope = a; break;
            case 1: slope = expf(v); break;
            case 2: { float share = 1.0f / (1.0f + expf(-v)); slope = share * (1.0f + v * (1.0f - share)); break; }
            case 3: slope = v > 0.0f ? 1.0f : 0.0f; break;
            case 4: slope = 2.0f * v; break;
            case 5: { float t = tanhf(v); slope = 1.0f - t * t; break; }
            case 7: slope = 1.0f / (1.0f + expf(-v)); break;
            case 8: slope = 1.0f / v; break;
            default: slope = v >= a && v <= b ? 1.0f : 0.0f;
        }
        out[i] = g[i] * slope;
    }
}

// left ∘ right: 0 add, 1 subtract, 2 multiply. The right operand has one number for each entry (0), row (1),
// column (2), or for all (3). `out` may be `left`.
extern "C" __global__ void join_entries(const float *left, const float *right, float *out, u64 count, u32 columns,
                                        int spread, int kind) {
    GRID(i, count) {
        u64 at = i;
        if (spread == 3) at = 0;
        else if (spread) { u64 row; u32 column; place(i, columns, row, column); at = spread == 1 ? row : column; }
        float a = left[i], b = right[at];
        out[i] = kind == 0 ? a + b : kind == 1 ? a - b : a * b;
    }
}

// The first `start` numbers as they are, the others times `factor`.
extern "C" __global__ void scale_entries(const float *x, float *out, u64 count, u64 start, float factor) {
    GRID(i, count) out[i] = i < start ? x[i] : factor * x[i];
}

// One number for all entries.
extern "C" __global__ void repeat_number(const float *x, float *out, u64 count) {
    float number = x[0];
    GRID(i, count) out[i] = number;
}

// One number for every row.
extern "C" __global__ void repeat_columns(const float *x, float *out, u64 count, u32 columns) {
    GRID(i, count) { u64 row; u32 column; place(i, columns, row, column); out[i] = x[row]; }
}

// Columns in another order: column j of the result is column order[j].
extern "C" __global__ void arrange_columns(const float *x, const u32 *order, float *out, u64 count, u32 columns) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, columns, row, column);
        out[i] = x[row * columns + order[column]];
    }
}

// out[i] = x[rows[i]], row by row; `count` entries of `columns` columns.
extern "C" __global__ void gather_rows(const float *x, const u32 *rows, float *out, u64 count, u32 columns) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, columns, row, column);
        out[i] = x[(u64)rows[row] * columns + column];
    }
}

// What reaches row r of those that chose it, choices[starts[r]..starts[r + 1]], in their order.
extern "C" __global__ void gather_rows_backward(const float *g, const u32 *starts, const u32 *choices, float *out,
                                                u64 count, u32 columns) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, columns, row, column);
        float sum = 0.0f;
        for (u32 c = starts[row]; c < starts[row + 1]; c++) sum += g[(u64)choices[c] * columns + column];
        out[i] = sum;
    }
}

// Columns start..start + width of a matrix of `columns`; `count` entries come out.
extern "C" __global__ void cut_columns(const float *x, float *out, u64 count, u32 columns, u32 start, u32 width) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, width, row, column);
        out[i] = x[row * columns + start + column];
    }
}

// A matrix of `columns`, zero but for x at columns start..start + width; `count` entries come out.
extern "C" __global__ void place_columns(const float *x, float *out, u64 count, u32 columns, u32 start, u32 width) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, columns, row, column);
        u32 within = column - start;
        out[i] = column >= start && within < width ? x[row * width + within] : 0.0f;
    }
}

// x at columns start..start + width of `out`, the others as they are; `count` entries go in.
extern "C" __global__ void write_columns(const float *x, float *out, u64 count, u32 columns, u32 start, u32 width) {
    GRID(i, count) {
        u64 row; u32 column;
        place(i, width, row, column);
        out[row * columns + start + column] = x[i];
    }
}

// Between four cells: row = set · places + place, cells and weights `[places, 4]`.
extern "C" __global__ void interpolate(const float *x, const u32 *rows, const u32 *cells, const float *weights, float *out,
                                       u64 count, u32 columns, u32 places, u32 num_cells) {
    GRID(i, count) {
        u64 choice; u32 column;
        place(i, columns, choice, column);
        u32 row = rows[choice], set = row / places, at = row - set * places;
        float sum = 0.0f;
        for (u32 k = 4 * at; k < 4 * at + 4; k++)
            sum += weights[k] * x[((u64)set * num_cells + cells[k]) * columns + column];
        out[i] = sum;
    }
}

// What reaches a cell: of every place around it, around[first[cell]..first[cell + 1]], and of every choice of it.
extern "C" __global__ void interpolate_backward(const float *g, const u32 *starts, const u32 *choices, const u32 *first,
                                                const u32 *around, const float *weights, float *out, u64 count,
                                                u32 columns, u32 places, u32 num_cells) {
    GRID(i, count) {
        u64 at; u32 column;
        place(i, columns, at, column);
        u32 set = (u32)(at / num_cells), cell = (u32)(at - (u64)set * num_cells);
        float sum = 0.0f;
        for (u32 k = first[cell]; k < first[cell + 1]; k++) {
            u64 row = (u64)set * places + around[k];
            for (u32 c = starts[row]; c < starts[row + 1]; c++) sum += weights[k] * g[(u64)choices[c] * columns + column];
        }
        out[i] = sum;
    }
}

// ω = −half_precision ‖y‖² − L − log K inside the domain, `nothing` outside.
extern "C" __global__ void weigh_draws(const float *y, const float *density, float *out, u64 rows, u32 dims, float low,
                                       float high, float half_precision, float log_count, float nothing) {
    GRID(row, rows) {
        float square = 0.0f; bool inside = true;
        for (u32 k = 0; k < dims; k++) {
            float v = y[row * dims + k];
            square += v * v;
            inside = inside && v >= low && v <= high;
        }
        out[row] = inside ? -half_precision * square - density[row] - log_count : nothing;
    }
}
