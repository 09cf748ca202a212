// LSTM: the recurrence with the weights spread over the blocks of a cluster.
#include "lstm.cuh"
#include "sm90.cuh"

namespace lstm {

// cluster takes Items items in one direction through the steps of the launch: a cluster for
// them, the items in order and their directions in turn. A block of it has Units/Blocks
// units, a thread the four gates of PerThread of them over Inputs of the inputs, whose
// weights are in its registers; Lanes neighbours have the rest of the inputs. Each adds up
// its part, then exchanges halve how many sums a lane has until it has one, and lanes with
// the same one are equal. Those of the forget and the output gate make the cell, and send h
// to all blocks: stores that count at a barrier there, so that a step waits for bytes and
// for nothing else. h is there twice. Nobody can overwrite what is still read: h of the
// step after next needs that of the next from every warp of the cluster, and a warp sends
// that when it has read.
template <int Units, int Blocks, int PerThread, int Inputs, int Items, int Ahead>
__device__ void cluster(const LSTM& a) {
	constexpr int Own = Units / Blocks, Lanes = Units / Inputs, Sums = 4 * PerThread, Threads = Own / PerThread * Lanes;
	constexpr int Levels = Lanes == 8 ? 3 : Lanes == 16 ? 4 : 5, Halvings = Sums == 4 ? 2 : 3;
	static_assert(1 << Levels == Lanes && 1 << Halvings == Sums && Sums <= Lanes, "each sum has a lane");
	constexpr int Holders = 2 * Lanes / Sums, Sends = (Blocks + Holders - 1) / Holders;  // lanes with the same h
	constexpr uint32_t Bytes = 4 * Items * Units;                                         // of h

	float* const hidden = dynamic_shared<float>();   // [2][Items][Units]
	float* const ring = hidden + 2 * Items * Units;  // [Ahead][Items][Threads]
	Mbarrier* const ready = (Mbarrier*)(ring + Ahead * Items * Threads);

	const uint32_t rank = cluster_rank(), group = blockIdx.x / Blocks;
	const uint32_t direction = group % a.Directions, item = group / a.Directions * Items;
	const uint32_t lane = threadIdx.x % Lanes, mine = rank * Own + threadIdx.x / Lanes * PerThread;

	float held[Sums][Inputs];
#pragma unroll
	for (int n = 0; n < Sums; n++) {
		const uint32_t unit = mine + n / 4;
		const float* row = a.Weights + (((int64_t)direction * a.Hidden + unit) * 4 + n % 4) * a.Depth;
#pragma unroll
		for (int j = 0; j < Inputs / 4; j++) {
			const uint32_t k = 4 * (j * Lanes + lane);
			float4 w{};
			if (unit < a.Hidden && k < a.Depth) w = load4(row + k);
			held[n][4 * j] = w.x;
			held[n][4 * j + 1] = w.y;
			held[n][4 * j + 2] = w.z;
			held[n][4 * j + 3] = w.w;
		}
	}

	// What the lane has after the exchanges: the first of them decides the highest bit.
	uint32_t sum_of_lane = 0;
#pragma unroll
	for (int b = 0; b < Halvings; b++) sum_of_lane |= (lane >> b & 1) << (Halvings - 1 - b);
	const uint32_t which = sum_of_lane % 4, unit = mine + sum_of_lane / 4;
	const uint32_t holder = which / 2 + 2 * (lane >> Halvings);
	const bool holds = which % 2 == 1, real = unit < a.Hidden;
	const Curve form = curve(which == 2);

	uint32_t length[Items], row[Items], longest = 0;
	float h[Items], c[Items];
#pragma unroll
	for (int i = 0; i < Items; i++) {
		const bool there = item + i < a.Batch;
		length[i] = there ? min(count_of(a.Lengths, item + i), a.Time) : 0;
		row[i] = there ? row_of(a.Rows, item + i) : NoRow;
		longest = max(longest, length[i]);
		auto begin = [&](uint32_t u, const float* kept, const View& v) -> float {
			if (!there || u >= a.Hidden) return 0.0f;
			if (a.Begin == 0) return kept[u];
			return row[i] != NoRow && v.P != nullptr ? state(v, row[i], direction)[u] : 0.0f;
		};
		const float* kept = a.From + between(a, item + i, direction);
		for (uint32_t u = threadIdx.x; u < Units; u += Threads) hidden[i * Units + u] = begin(u, kept, a.H0);
		h[i] = begin(unit, kept, a.H0);
		c[i] = begin(unit, a.Cells + cells(a, item + i, direction), a.C0);
	}

	// Steps beyond the longest item come last in the forward direction, first in the other.
	uint32_t first = a.First, end = a.First + a.Steps;
	if (direction == 0) end = min(end, longest);
	else first = max(first, a.Time - longest);
	const uint32_t steps = first < end ? end - first : 0;

	// The gates' share of the input, some steps ahead.
	const float* gates = gates_at(a, item, direction, first - a.First) + which * a.Hidden + unit;
	const int64_t stride = (direction == 0 ? 1 : -1) * (int64_t)a.Directions * 4 * a.Hidden;
	const int64_t apart = (int64_t)a.Count * a.Directions * 4 * a.Hidden;
	auto fetch = [&](uint32_t s) {
#pragma unroll
		for (int i = 0; i < Items; i++) {
			const bool there = s < steps && real && (Items == 1 || time_of(a, direction, first + s) < length[i]);
			copy_async<4>(ring + (s % Ahead * Items + i) * Threads + threadIdx.x, there ? gates + i * apart : a.Gates, there ? 4 : 0);
		}
		copy_commit();
		gates += stride;
	};
#pragma unroll
	for (uint32_t s = 0; s + 1 < Ahead; s++) fetch(s);

	uint32_t to[Sends], at[Sends];  // where h goes next; the halves take turns
#pragma unroll
	for (int i = 0; i < Sends; i++) {
		const uint32_t block = (holder + i * Holders) % Blocks;
		to[i] = cluster_address(hidden + Items * Units + unit, block);
		at[i] = cluster_address(ready + 1, block);
	}
	if (threadIdx.x == 0) {
		mbarrier_init(ready, 1);
		mbarrier_init(ready + 1, 1);
		mbarrier_ready();
	}
	__syncthreads();  // for racecheck: the same thread goes on, but it takes the warp for who began them
	if (threadIdx.x == 0) {
		mbarrier_expect(ready, Bytes);
		mbarrier_expect(ready + 1, Bytes);
	}
	__syncwarp();
	cluster_sync();

	float* y = a.Y.P + (int64_t)item * a.Y.Batch + (int64_t)time_of(a, direction, first) * a.Y.Row + direction * a.Hidden + unit;
	const int64_t along = direction == 0 ? a.Y.Row : -a.Y.Row;
#pragma unroll 1
	for (uint32_t s = 0; s < steps; s++) {
		const uint32_t slot = s % 2, time = time_of(a, direction, first + s);
		fetch(s + Ahead - 1);
		if (s > 0) {
			mbarrier_wait(ready + slot, (s - 1) / 2 % 2);
			if (threadIdx.x == 0) mbarrier_expect(ready + slot, Bytes);
		}
		float sum[Items][Sums] = {};
#pragma unroll
		for (int j = 0; j < Inputs / 4; j++) {
#pragma unroll
			for (int i = 0; i < Items; i++) {
				const float4 v = load4(hidden + (slot * Items + i) * Units + 4 * (j * Lanes + lane));
				const float in[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
				for (int e = 0; e < 4; e++) {
#pragma unroll
					for (int n = 0; n < Sums; n++) sum[i][n] = fmaf(in[e], held[n][4 * j + e], sum[i][n]);
				}
			}
		}
#pragma unroll
		for (int b = 0; b < Levels; b++) {
			const bool upper = lane >> b & 1;
#pragma unroll
			for (int i = 0; i < Items; i++) {
				if (b < Halvings) {
					const int half = Sums >> (b + 1);
#pragma unroll
					for (int n = 0; n < half; n++) {
						const float low = sum[i][n], high = sum[i][n + half];
						sum[i][n] = (upper ? high : low) + shfl_xor(upper ? low : high, 1 << b);
					}
				} else {
					sum[i][0] += shfl_xor(sum[i][0], 1 << b);
				}
			}
		}
		copy_wait<Ahead - 1>();
#pragma unroll
		for (int i = 0; i < Items; i++) {
			const float v = gate(sum[i][0] + ring[(s % Ahead * Items + i) * Threads + threadIdx.x], form);
			const float other = shfl_xor(v, 1 << (Halvings - 2));          // input and candidate, forget and output
			const float given = shfl_xor(v * other, 1 << (Halvings - 1));  // from those to these
			if (Items == 1 || time < length[i]) {
				c[i] = fmaf(which == 1 ? v : other, c[i], given);
				h[i] = (which == 1 ? other : v) * gate(c[i], true);
			}
			if (holds && s + 1 < steps) {
#pragma unroll
				for (int d = 0; d < Sends; d++) {
					if (holder + d * Holders < Blocks) store_async(to[d] + i * Units * 4, h[i], at[d]);
				}
			}
		}
		// Now others wait for nothing from here.
#pragma unroll
		for (int i = 0; i < Items; i++) {
			if (holds && holder == 0 && real && (Items == 1 || time < length[i])) y[(int64_t)i * a.Y.Batch] = h[i];
		}
		y += along;
#pragma unroll
		for (int d = 0; d < Sends; d++) {
			to[d] += slot == 0 ? -Items * Units * 4 : Items * Units * 4;
			at[d] += slot == 0 ? -8 : 8;
		}
	}
	release_dependents();
	copy_wait<0>();

#pragma unroll
	for (int i = 0; i < Items; i++) {
		if (!real || item + i >= a.Batch) continue;
		if (holds && holder == 0) {
			if (a.End & KeepHidden) a.To[between(a, item + i, direction) + unit] = h[i];
			if (a.End & KeepCells) a.Cells[cells(a, item + i, direction) + unit] = c[i];
			if (row[i] != NoRow && (a.End & EndHidden)) state(a.H, row[i], direction)[unit] = h[i];
			if (row[i] != NoRow && (a.End & EndCells)) state(a.C, row[i], direction)[unit] = c[i];
		}
		if (which != 0) continue;
		const uint32_t from = direction == 0 ? a.First : a.Time - a.First - a.Steps;
		float* zeros = a.Y.P + (int64_t)(item + i) * a.Y.Batch + direction * a.Hidden + unit;
		for (uint32_t t = max(from, length[i]) + (lane >> Halvings); t < from + a.Steps; t += Lanes / Sums) zeros[(int64_t)t * a.Y.Row] = 0;
	}
	__syncwarp();
	cluster_sync();  // no block may end while others still send to it
}

}  // namespace lstm
