// LSTM: the recurrence. The products of the inputs are made before, for many steps at once.
#include "lstm.cuh"

namespace lstm {

// resident takes Items items in one direction through the steps of the launch; blockIdx.x
// numbers the groups of items, and their directions in turn. The recurrent weights of up to
// Units units stay on the chip. Two neighbouring lanes share a unit: each sums all four of
// its gates over half of h, in fours of which the lanes take every other; the first then
// has the input and the candidate, the second the forget gate, the output and the cell. Of
// the weights a lane holds those of Held inputs in registers, and the rest lie in shared
// memory, as a file of registers is just as large as all weights of 128 units. h is there
// twice, to be read and to be written, so that a step has one barrier.
template <int Units, int Items, int Held>
__device__ void resident(const LSTM& a) {
	constexpr int Threads = 2 * Units, Inputs = Units / 2, InRegisters = Inputs < Held ? Inputs : Held;  // whole fours
	constexpr int Kept = Inputs - InRegisters;
	const uint32_t direction = blockIdx.x % a.Directions, first = blockIdx.x / a.Directions * Items;
	const uint32_t unit = threadIdx.x / 2, half = threadIdx.x % 2;
	const bool real = unit < a.Hidden;

	float4* const kept = dynamic_shared<float4>();             // [Kept][Threads]
	float* const hidden = (float*)(kept + Kept * Threads);     // [2][Items][Units]
	float4 held[InRegisters];                                  // i, f, g, o of an input
	const float* weights = a.Weights + ((int64_t)direction * a.Hidden + unit) * 4 * a.Depth;
#pragma unroll
	for (int j = 0; j < Inputs / 4; j++) {
		const uint32_t k = 8 * j + 4 * half;
		float4 w[4];
#pragma unroll
		for (int g = 0; g < 4; g++) {
			w[g] = float4{0, 0, 0, 0};
			if (real && k < a.Depth) w[g] = load4(weights + g * a.Depth + k);
		}
		const float4 of[4] = {{w[0].x, w[1].x, w[2].x, w[3].x},
		                      {w[0].y, w[1].y, w[2].y, w[3].y},
		                      {w[0].z, w[1].z, w[2].z, w[3].z},
		                      {w[0].w, w[1].w, w[2].w, w[3].w}};
#pragma unroll
		for (int e = 0; e < 4; e++) {
			if (4 * j + e < InRegisters) held[4 * j + e] = of[e];
			else kept[(4 * j + e - InRegisters) * Threads + threadIdx.x] = of[e];
		}
	}

	uint32_t length[Items], longest = 0;
	float cell[Items];
#pragma unroll
	for (int i = 0; i < Items; i++) {
		const uint32_t item = first + i;
		const bool there = item < a.Batch;
		length[i] = there ? min(count_of(a.Lengths, item), a.Time) : 0;
		const uint32_t row = there ? row_of(a.Rows, item) : NoRow;
		longest = max(longest, length[i]);
		float h = 0;
		cell[i] = 0;
		if (there && real && a.Begin == 0) {
			h = a.From[between(a, item, direction) + unit];
			cell[i] = a.Cells[cells(a, item, direction) + unit];
		} else if (row != NoRow && real && a.H0.P != nullptr) {
			h = state(a.H0, row, direction)[unit];
			cell[i] = state(a.C0, row, direction)[unit];
		}
		if (half == 1) hidden[i * Units + unit] = h;
	}
	__syncthreads();

	// Steps beyond the longest item come last in the forward direction, first in the other.
	uint32_t step = a.First, end = a.First + a.Steps;
	if (direction == 0) end = min(end, longest);
	else step = max(step, a.Time - longest);
	float next[Items][2];
	const float* gates = gates_at(a, first, direction, step - a.First) + half * a.Hidden + unit;
	auto fetch = [&](uint32_t s) {
#pragma unroll
		for (int i = 0; i < Items; i++) {
			next[i][0] = next[i][1] = 0;
			if (!real || s >= end || (Items > 1 && time_of(a, direction, s) >= length[i])) continue;
			const float* g = gates + (int64_t)i * a.Count * a.Directions * 4 * a.Hidden;
			next[i][0] = g[0];
			next[i][1] = g[2 * a.Hidden];
		}
		const int64_t row = (int64_t)a.Directions * 4 * a.Hidden;
		gates += direction == 0 ? row : -row;
	};
	fetch(step);
	uint32_t turn = 0;
#pragma unroll 1
	for (; step < end; step++, turn ^= 1) {
		const uint32_t time = time_of(a, direction, step);
		const float* const old = hidden + turn * Items * Units;
		const bool low = half == 0;
		float sum[Items][4];
#pragma unroll
		for (int i = 0; i < Items; i++) {
			sum[i][0] = low ? next[i][0] : 0.0f;
			sum[i][1] = low ? 0.0f : next[i][0];
			sum[i][2] = low ? next[i][1] : 0.0f;
			sum[i][3] = low ? 0.0f : next[i][1];
		}
		fetch(step + 1);
		auto add = [&](int j, const float4(&w)[4]) {
#pragma unroll
			for (int i = 0; i < Items; i++) {
				const float4 h = load4(old + i * Units + 8 * j + 4 * half);
				const float in[4] = {h.x, h.y, h.z, h.w};
#pragma unroll
				for (int e = 0; e < 4; e++) {
					sum[i][0] = fmaf(in[e], w[e].x, sum[i][0]);
					sum[i][1] = fmaf(in[e], w[e].y, sum[i][1]);
					sum[i][2] = fmaf(in[e], w[e].z, sum[i][2]);
					sum[i][3] = fmaf(in[e], w[e].w, sum[i][3]);
				}
			}
		};
#pragma unroll 1
		for (int j = InRegisters / 4; j < Inputs / 4; j++) {
			float4 w[4];
#pragma unroll
			for (int e = 0; e < 4; e++) w[e] = kept[(4 * j + e - InRegisters) * Threads + threadIdx.x];
			add(j, w);
		}
#pragma unroll
		for (int j = 0; j < InRegisters / 4; j++) {
			add(j, {held[4 * j], held[4 * j + 1], held[4 * j + 2], held[4 * j + 3]});
		}
#pragma unroll
		for (int i = 0; i < Items; i++) {
			const float one = (low ? sum[i][0] : sum[i][1]) + shfl_xor(low ? sum[i][1] : sum[i][0], 1);
			const float two = (low ? sum[i][2] : sum[i][3]) + shfl_xor(low ? sum[i][3] : sum[i][2], 1);
			const float first_gate = gate(one, false), second = gate(two, low);
			const float given = shfl_xor(first_gate * second, 1);
			float h = Items == 1 ? 0.0f : old[i * Units + unit];
			const bool active = Items == 1 || time < length[i];
			if (active) {
				cell[i] = fmaf(first_gate, cell[i], given);
				h = second * gate(cell[i], true);
			}
			if (!low) hidden[((turn ^ 1) * Items + i) * Units + unit] = h;
			if (!low && active && real) {
				a.Y.P[(int64_t)(first + i) * a.Y.Batch + (int64_t)time * a.Y.Row + direction * a.Hidden + unit] = h;
			}
		}
		__syncthreads();
	}
	release_dependents();

#pragma unroll
	for (int i = 0; i < Items; i++) {
		const uint32_t item = first + i;
		if (item >= a.Batch || !real) continue;
		const float h = hidden[(turn * Items + i) * Units + unit];
		if (half == 1) {
			if (a.End & KeepHidden) a.To[between(a, item, direction) + unit] = h;
			if (a.End & KeepCells) a.Cells[cells(a, item, direction) + unit] = cell[i];
			if (a.End & EndHidden) {  // which row is looked up again: registers are scarce
				const uint32_t row = row_of(a.Rows, item);
				if (row != NoRow) {
					state(a.H, row, direction)[unit] = h;
					state(a.C, row, direction)[unit] = cell[i];
				}
			}
		}
		// Both directions have the same times behind an item's end in the same launch or not.
		const uint32_t from = direction == 0 ? a.First : a.Time - a.First - a.Steps;
		float* y = a.Y.P + (int64_t)item * a.Y.Batch + direction * a.Hidden + unit;
		for (uint32_t t = max(from, length[i]) + half; t < from + a.Steps; t += 2) y[(int64_t)t * a.Y.Row] = 0;
	}
}

// spread adds N values, a power of two up to 32, over the lanes of a warp: lane i gets the
// sum of value i·N/32. Each exchange halves how many values a lane has.
template <int N, int Mask = 16>
__device__ inline float spread(const float (&v)[N]) {
	if constexpr (N == 1) {
		if constexpr (Mask == 0) return v[0];
		else return warp_sum<2 * Mask>(v[0]);
	} else {
		const bool upper = lane_id() & Mask;
		float rest[N / 2];
#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			rest[i] = (upper ? v[i + N / 2] : v[i]) + shfl_xor(upper ? v[i] : v[i + N / 2], Mask);
		}
		return spread<N / 2, Mask / 2>(rest);
	}
}

// step takes all items through one step, whatever the number of units. A warp makes one
// unit of one direction for Items items: its lanes take fours of the inputs in turn, so
// that the rows of the four gates are read once. blockIdx.x numbers the groups of items,
// then groups of four units, then the directions. What weights are multiplied by lies in
// shared memory, some inputs at a time. Whole: the gates' share of the input is made too.
template <int Items, bool Whole>
__device__ void step(const LSTM& a) {
	constexpr uint32_t Warps = 4, Chunk = 1024, Values = 4 * Items, Share = 32 / Values;
	__shared__ float4 left[Items][Chunk / 4];
	__shared__ uint32_t rows[Items];
	const uint32_t tiles = ceil_div(a.Batch, (uint32_t)Items), groups = ceil_div(a.Hidden, Warps);
	const uint32_t first = blockIdx.x % tiles * Items, group = blockIdx.x / tiles;
	const uint32_t direction = group / groups, unit = group % groups * Warps + warp_id();
	const bool real = unit < a.Hidden;
	const uint32_t time = time_of(a, direction, a.First);

	if (threadIdx.x < Items) {
		const bool needed = first + threadIdx.x < a.Batch && (a.Begin || a.End & (EndCells | EndHidden));
		rows[threadIdx.x] = needed ? row_of(a.Rows, first + threadIdx.x) : NoRow;
	}
	float sum[Values] = {};
	// Adds products of weights, whose gates lie gate elements apart, and of depth inputs.
	auto add = [&](const float* weights, int64_t gate, uint32_t depth, auto input) {
#pragma unroll 1
		for (uint32_t from = 0; from < depth; from += Chunk) {
			const uint32_t count = min(Chunk, (depth - from + 3) / 4 * 4);
			__syncthreads();
			for (uint32_t k = threadIdx.x; k < Items * count; k += Warps * 32) {
				const uint32_t i = k / count, at = from + k % count;
				((float*)left[i])[k % count] = first + i < a.Batch && at < depth ? input(i, at) : 0.0f;
			}
			__syncthreads();
#pragma unroll 2
			for (uint32_t k = 4 * lane_id(); k < count; k += 128) {
				float4 w[4];
#pragma unroll
				for (int g = 0; g < 4; g++) w[g] = load4(weights + g * gate + from + k);
#pragma unroll
				for (int i = 0; i < Items; i++) {
					const float4 x = left[i][k / 4];
#pragma unroll
					for (int g = 0; g < 4; g++) {
						float& s = sum[4 * i + g];
						s = fmaf(x.x, w[g].x, s);
						s = fmaf(x.y, w[g].y, s);
						s = fmaf(x.z, w[g].z, s);
						s = fmaf(x.w, w[g].w, s);
					}
				}
			}
		}
	};
	const uint32_t some = real ? unit : 0;
	if constexpr (Whole) {
		const float* x = a.X.P + (int64_t)first * a.X.Batch + (int64_t)time * a.X.Row;
		add(a.InputWeights + ((int64_t)direction * 4 * a.Hidden + some) * a.InputRow, (int64_t)a.Hidden * a.InputRow, a.Inputs,
		    [&](uint32_t i, uint32_t at) { return x[(int64_t)i * a.X.Batch + at]; });
	}
	add(a.Weights + ((int64_t)direction * a.Hidden + some) * 4 * a.Depth, a.Depth, a.Hidden, [&](uint32_t i, uint32_t at) {
		if (a.Begin == 0) return a.From[between(a, first + i, direction) + at];
		return a.H0.P != nullptr && rows[i] != NoRow ? state(a.H0, rows[i], direction)[at] : 0.0f;
	});

	// A lane has one gate of one item now.
	float v = spread(sum);
	const uint32_t mine = lane_id() / Share, g = mine % 4, i = mine / 4, item = first + i;
	const bool there = item < a.Batch && real;
	const bool active = there && time < min(count_of(a.Lengths, there ? item : 0), a.Time);
	if (active) v += Whole ? a.Bias[(direction * 4 + g) * a.Hidden + unit] : gates_at(a, item, direction, 0)[g * a.Hidden + unit];
	v = gate(v, g == 2);
	const uint32_t base = 4 * i * Share;
	const float in = shfl(v, base), forget = shfl(v, base + Share), candidate = shfl(v, base + 2 * Share), out = shfl(v, base + 3 * Share);
	release_dependents();
	if (!there || g != 0 || lane_id() % Share != 0) return;

	float c = 0, h = 0;
	if (a.Begin == 0) {
		c = a.Cells[cells(a, item, direction) + unit];
		h = a.From[between(a, item, direction) + unit];
	} else if (a.C0.P != nullptr && rows[i] != NoRow) {
		c = state(a.C0, rows[i], direction)[unit];
		h = state(a.H0, rows[i], direction)[unit];
	}
	float* y = a.Y.P + (int64_t)item * a.Y.Batch + (int64_t)time * a.Y.Row + direction * a.Hidden + unit;
	if (active) {
		c = fmaf(forget, c, in * candidate);
		h = out * gate(c, true);
		*y = h;
	} else {
		*y = 0;
	}
	if (a.End & KeepHidden) a.To[between(a, item, direction) + unit] = h;
	if (a.End & KeepCells) a.Cells[cells(a, item, direction) + unit] = c;
	if (rows[i] == NoRow) return;
	if (a.End & EndCells) state(a.C, rows[i], direction)[unit] = c;
	if (a.End & EndHidden) state(a.H, rows[i], direction)[unit] = h;
}

// copy_state copies the rows of the items; a block copies one vector of one.
__device__ void copy_state(const StateCopy& a) {
	const uint32_t item = blockIdx.x / a.Vectors, vector = blockIdx.x % a.Vectors;
	const uint32_t row = row_of(a.Rows, item);
	if (row == NoRow) return;
	const float* x = a.X.P == nullptr ? nullptr : state(a.X, a.XByItem ? item : row, vector);
	float* y = state(a.Y, row, vector);
	for (uint32_t k = threadIdx.x; k < a.Hidden; k += blockDim.x) y[k] = x == nullptr ? 0.0f : x[k];
}

}  // namespace lstm
