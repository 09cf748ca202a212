// What becomes of a sum of a Few.
#pragma once

#include "epilogue.cuh"

namespace linear {

__device__ inline void put(const Few& a, uint32_t row, uint32_t column, float sum) {
	if (row >= a.Rows || column >= a.Columns) return;
	const uint32_t item = row / a.ItemRows;
	float* c = a.C.P + item * a.C.Batch + (row - item * a.ItemRows) * a.C.Row + column;
	if (a.Dual != nullptr && column >= a.DualFrom && column < a.DualTo) c[a.DualShift] = sum + a.Dual[column - a.DualFrom];
	const float v = a.Bias != nullptr ? sum + a.Bias[column] : sum;
	*c = apply(a.Epilogue, v, in_place(a.Epilogue) ? *c : 0.0f);
}

}  // namespace linear
