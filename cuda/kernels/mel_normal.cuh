// What LogMel does with the logarithms of an item.
#pragma once
#include "rows.cuh"

namespace mel {

// frames_of returns how many frames a clip of some samples has.
template <class A>
__device__ uint32_t frames_of(const A& a, uint32_t length) {
	const uint64_t padded = (uint64_t)length + a.Left + a.Right;
	if (length == 0 || padded < a.Frame) return 0;
	return (uint32_t)((padded - a.Frame) / a.Hop) + 1 - a.Drop;
}

// An Item is what a block has to know of its item.
struct Item {
	uint32_t number, group, length, frames;

	__device__ explicit Item(const MelNormal& a) {
		number = blockIdx.x / a.Groups;
		group = blockIdx.x % a.Groups;
		length = rows::number_of(a.Lengths, number, a.Reflect ? max(a.Left, a.Right) : 0);
		frames = frames_of(a, length);
	}
};

constexpr uint32_t ScaleValues = 1024, BinsAcross = 8; // of a block

// scale bounds 1,024 values a block from below by the largest of the item, and scales
// them.
__device__ void scale(const MelNormal& a) {
	release_dependents();
	const Item item(a);
	float top = -infinity();
	for (uint32_t i = threadIdx.x; i < item.frames; i += 256) top = max_or_nan(top, a.Largest[(int64_t)item.number * a.Frames + i]);
	top = block_reduce<256>(top, LargestOrNaN());
	const int64_t end = (int64_t)item.frames * a.Mels, first = (int64_t)item.group * ScaleValues;
	float* y = rows::at(a.Y, item.number, 0, 0);
	for (int64_t i = first + threadIdx.x; i < min(first + ScaleValues, end); i += 256) {
		float* v = y + i / a.Mels * a.Y.Row + i % a.Mels;
		*v = is_nan(top) ? top : (fmaxf(*v, top - 8.0f) + 4.0f) * 0.25f;
	}
}

// column adds v up over the 128 threads of a bin: lanes 8 apart in each warp, then warps.
template <int Slot>
__device__ float column(float v) {
	__shared__ float shares[32][BinsAcross];
	v += shfl_xor(v, 8);
	v += shfl_xor(v, 16);
	if (lane_id() < BinsAcross) shares[warp_id()][lane_id()] = v;
	__syncthreads();
	v = 0.0f;
	for (int i = 0; i < 32; i += 4) // in fours, which need not wait for each other
		v += (shares[i][threadIdx.x % BinsAcross] + shares[i + 1][threadIdx.x % BinsAcross]) +
			(shares[i + 2][threadIdx.x % BinsAcross] + shares[i + 3][threadIdx.x % BinsAcross]);
	return v;
}

// over adds up f of the frames of a thread, in stretches: clips may be long.
template <class F>
__device__ float over(uint32_t count, F f) {
	constexpr uint32_t lanes = 1024 / BinsAcross;
	float total = 0.0f;
	for (uint32_t first = threadIdx.x / BinsAcross; first < count; first += 32 * lanes) {
		float sum = 0.0f;
#pragma unroll 8
		for (uint32_t i = first; i < min(first + 32 * lanes, count); i += lanes) sum += f(i);
		total += sum;
	}
	return total;
}

// bins subtracts from eight bins a block their means over time, and with PerBin divides by
// their deviations.
__device__ void bins(const MelNormal& a) {
	release_dependents();
	const Item item(a);
	const uint32_t bin = item.group * BinsAcross + threadIdx.x % BinsAcross;
	const uint32_t count = a.PerBin ? min(item.length / a.Hop, item.frames) : item.frames;
	const uint32_t mine = bin < a.Mels ? count : 0;
	float* y = rows::at(a.Y, item.number, 0, bin);
	// Logarithms may lie far from zero, close to each other: what is averaged is how far they
	// are from the first one.
	const float first = mine > 0 && fabsf(y[0]) < infinity() ? y[0] : 0.0f;
	const float mean = column<0>(over(mine, [&](uint32_t i) { return y[i * a.Y.Row] - first; })) / (float)max(count, 1u);
	float scale = 1.0f;
	if (a.PerBin) {
		const float squares = column<1>(over(mine, [&](uint32_t i) {
			const float d = (y[i * a.Y.Row] - first) - mean;
			return d * d;
		}));
		scale = 1.0f / (sqrtf(squares / (float)(max(count, 2u) - 1)) + a.Epsilon);
	}
	if (bin >= a.Mels) return;
#pragma unroll 4
	for (uint32_t i = threadIdx.x / BinsAcross; i < item.frames; i += 1024 / BinsAcross)
		y[i * a.Y.Row] = i < count ? ((y[i * a.Y.Row] - first) - mean) * scale : 0.0f;
}

}  // namespace mel
