// What the kernels of recurrences share: activations, rows of the state and lengths.
#pragma once

#include "device.cuh"

namespace lstm {

// exp_of returns e^v for v in [−88, 80], off by about two units in the last place: the
// error of v·log₂e is carried along, which that of exp2_approx alone would multiply.
__device__ inline float exp_of(float v) {
	constexpr float Log2E = 1.44269502f, Log2EBeyond = 1.92596299e-8f, Ln2 = 0.693147181f;
	const float y = v * Log2E;
	const float beyond = fmaf(v, Log2EBeyond, fmaf(v, Log2E, -y));
	const float r = exp2_approx(y);
	return fmaf(r, beyond * Ln2, r);
}

// clamped keeps exp_of's argument in its range; NaN passes.
__device__ inline float clamped(float v) { return v > 80.0f ? 80.0f : v < -88.0f ? -88.0f : v; }

// gate returns tanh(v) or sigmoid(v), without branches, since lanes differ. Near zero tanh
// is Cephes' polynomial: 2·sigmoid(2v) − 1 would lose its digits.
__device__ inline float gate(float v, bool is_tanh) {
	const float e = exp_of(clamped((is_tanh ? -2.0f : -1.0f) * v));
	const float s = reciprocal_approx(1.0f + e);
	const float far = fmaf(2.0f, s, -1.0f), z = v * v;
	float p = fmaf(z, -5.70498872745e-3f, 2.06390887954e-2f);
	p = fmaf(z, p, -5.37397155531e-2f);
	p = fmaf(z, p, 1.33314422036e-1f);
	p = fmaf(z, p, -3.33332819422e-1f);
	const float near = fmaf(z * p, v, v);
	const float t = fabsf(v) < 0.55f ? near : far;
	return is_tanh ? t : s;
}

// Where the state goes: see LSTMEndCells in lstm.go.
constexpr uint32_t EndCells = 1, EndHidden = 2, KeepCells = 4, KeepHidden = 8;

constexpr uint32_t NoRow = 0xffffffffu;

// row_of returns the row of the state that an item uses. A row beyond the last, or one that
// an item before has too, is none.
__device__ inline uint32_t row_of(const Items& rows, uint32_t item) {
	if (rows.P == nullptr) return item;
	const uint32_t row = rows.P[item];
	bool good = row <= rows.Usual;
	if (rows.Status != nullptr) {
		for (uint32_t i = 0; i < item; i++) good = good && rows.P[i] != row;
		if (!good) atomic_or(rows.Status, StatusIndex);
	}
	return good ? row : NoRow;
}

// state returns where a vector of the state of an item is.
__device__ inline float* state(const View& v, uint32_t row, uint32_t direction) {
	return v.P + (int64_t)row * v.Batch + (int64_t)direction * v.Row;
}

// between returns where the vector of an item and direction is in From and To.
__device__ inline int64_t between(const LSTM& a, uint32_t item, uint32_t direction) {
	return ((int64_t)item * a.Vectors + direction) * a.Depth;
}

// cells returns where the cells of an item and direction are in Cells.
__device__ inline int64_t cells(const LSTM& a, uint32_t item, uint32_t direction) {
	return ((int64_t)item * a.Directions + direction) * a.Hidden;
}

// time_of returns when a step is.
__device__ inline uint32_t time_of(const LSTM& a, uint32_t direction, uint32_t step) {
	return direction == 0 ? step : a.Time - 1 - step;
}

// gates_at returns where the gates of an item in a step are, which is counted from the first
// of the launch.
__device__ inline const float* gates_at(const LSTM& a, uint32_t item, uint32_t direction, uint32_t step) {
	const uint32_t local = direction == 0 ? a.Offset + step : a.Count - 1 - a.Offset - step;
	return a.Gates + (((int64_t)item * a.Count + local) * a.Directions + direction) * 4 * a.Hidden;
}

}  // namespace lstm
