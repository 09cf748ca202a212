// What the kernels of recurrences share: activations, rows of the state and lengths.
#pragma once

#include "device.cuh"

namespace lstm {

// A Curve says whether a gate is tanh or sigmoid, in numbers, since lanes differ and
// branches would keep all waiting.
struct Curve {
	float factor, scale, offset, limit;
};

__device__ inline Curve curve(bool is_tanh) {
	return {is_tanh ? -2.88539008f : -1.44269504f, is_tanh ? 2.0f : 1.0f, is_tanh ? -1.0f : 0.0f, is_tanh ? 0.55f : 0.0f};
}

// gate returns tanh(v) or sigmoid(v). An error of e^−v counts by sigmoid·(1 − sigmoid), so
// that neither rounding v·log₂e nor exp2_flush's own is more than a quarter of a unit;
// infinities come out as the limits and NaN as NaN. Near zero tanh is Cephes' polynomial:
// 2·sigmoid(2v) − 1 would lose its digits.
__device__ inline float gate(float v, const Curve& k) {
	const float far = fmaf(reciprocal_flush(1.0f + exp2_flush(k.factor * v)), k.scale, k.offset);
	const float z = v * v;
	float p = fmaf(z, -5.70498872745e-3f, 2.06390887954e-2f);
	p = fmaf(z, p, -5.37397155531e-2f);
	p = fmaf(z, p, 1.33314422036e-1f);
	p = fmaf(z, p, -3.33332819422e-1f);
	const float near = fmaf(z * p, v, v);
	return fabsf(v) < k.limit ? near : far;
}
__device__ inline float gate(float v, bool is_tanh) { return gate(v, curve(is_tanh)); }

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
