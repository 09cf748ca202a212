// Halves for attention: blocks of keys, values and relative positions; see attention.go.
#include "attention_parts.cuh"

namespace attention {

// Threads of a thread block: Rows have less to find places for, and each thread more in flight.
template <int D, bool Rows>
constexpr int PackThreads = Rows ? 2 * D : 256;

// A Source is the rows of a block: row r of them is row From + r of what begins at P, and
// is there if that is within Count.
template <typename T>
struct Source {
	const T* P;
	int64_t Row, From, Count;
	int Dim;
	bool Vectors;

	__device__ bool has(int r) const { return From + r >= 0 && From + r < Count; }
};

// Eight elements that lie side by side in a block: of a row, or Turned of a dimension.
template <typename T, int D, bool Turned>
struct Chunks {
	static constexpr int Count = BlockRows * D / 8;
	int line, chunk;  // row and chunk of dimensions, or dimension and chunk of rows

	// Neighbouring lanes read, and write, neighbouring places.
	__device__ explicit Chunks(int i) {
		if (Turned) {
			line = i / 128 * 16 + i % 16;
			chunk = i / 16 % 8;
		} else {
			line = i / (D / 8);
			chunk = i % (D / 8);
		}
	}

	__device__ void load(const Source<T>& s, float (&v)[8]) const {
#pragma unroll
		for (int e = 0; e < 8; e++) v[e] = 0.0f;
		if (Turned) {
			if (line >= s.Dim) return;
#pragma unroll
			for (int e = 0; e < 8; e++) {
				const int r = chunk * 8 + e;
				if (s.has(r)) v[e] = to_number(s.P[(s.From + r) * s.Row + line]);
			}
			return;
		}
		if (!s.has(line)) return;
		const T* p = s.P + (s.From + line) * s.Row + chunk * 8;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			if (chunk * 8 + h * 4 >= s.Dim) break;
			const float4 q = load_quad(p + h * 4, s.Vectors);
			v[4 * h] = q.x, v[4 * h + 1] = q.y, v[4 * h + 2] = q.z, v[4 * h + 3] = q.w;
		}
	}

	// place returns where the chunk lies in the block.
	__device__ int place() const {
		const int panel = Turned ? 0 : chunk / 8;
		return (panel * BlockRows + line) * 64 + ((chunk % 8) ^ (line % 8)) * 8;
	}

	static __device__ float to_number(float v) { return v; }
	static __device__ float to_number(half v) { return to_float(v); }
};

__device__ inline void store_halves(half* to, const float (&v)[8]) {
	*reinterpret_cast<uint4*>(to) = {pack_half(v[0], v[1]), pack_half(v[2], v[3]), pack_half(v[4], v[5]), pack_half(v[6], v[7])};
}

// block_power returns the scale of a block. Usual: 1 where halves have digits enough without
// one, since what they take from numbers below 2^−14 is within 2^−21 of the largest, and a
// factor of 0 for a block of zeros.
template <bool Usual>
__device__ inline Power block_power(float largest) {
	if (Usual && largest == 0.0f) return {1.0f, 0.0f};
	if (Usual && largest >= 0x1p-4f && largest < 0x1p15f) return {1.0f, 1.0f};
	return power_for(largest);
}

// pack_block makes one block. All threads of the thread block take part.
template <typename T, int D, bool Exact, bool Turned, bool Usual>
__device__ inline void pack_block(const Source<T>& s, bool values, half* to, float* factor) {
	using Chunk = Chunks<T, D, Turned>;
	constexpr int Threads = PackThreads<D, Usual>, Each = Chunk::Count / Threads;
	float v[Each][8], most = 0.0f;
	bool odd = false;
#pragma unroll
	for (int i = 0; i < Each; i++) Chunk(threadIdx.x + i * Threads).load(s, v[i]);
#pragma unroll
	for (int i = 0; i < Each; i++) {
#pragma unroll
		for (int e = 0; e < 8; e++) {
			most = fmaxf(most, magnitude(v[i][e]));
			odd |= !finite(v[i][e]);
		}
	}
	most = block_max<Threads>(most);
	if (values) odd = __syncthreads_or(odd);
	const Power scale = block_power<Usual>(most);
	if (threadIdx.x == 0) *factor = values && odd ? -fmaxf(scale.down, 0x1p-126f) : scale.down;
#pragma unroll
	for (int i = 0; i < Each; i++) {
#pragma unroll
		for (int e = 0; e < 8; e++) v[i][e] = values && !finite(v[i][e]) ? 0.0f : v[i][e] * scale.up;
		half* p = to + Chunk(threadIdx.x + i * Threads).place();
		store_halves(p, v[i]);
		if (Exact) {
#pragma unroll
			for (int e = 0; e < 8; e++) v[i][e] = rest(v[i][e]);
			store_halves(p + BlockRows * D, v[i]);
		}
	}
}

// positions_of returns where the rows of a block of relative positions are, of count of a head.
template <typename Args>
__device__ inline Source<float> positions_of(const Args& a, uint32_t head, uint32_t block, uint32_t count, int64_t keys) {
	return {a.P.P + static_cast<int64_t>(head) * a.Dim, a.P.Row,
	        BlockRows * static_cast<int64_t>(block) - BlockRows / 2 * static_cast<int64_t>(count) + keys - 1, 2 * keys - 1,
	        static_cast<int>(a.Dim), quads_aligned(a.P.P, a.P.Row, 0, 0)};
}

// A thread block makes one block of keys or, of odd numbers, of values: x counts those of
// a head, head after head and item after item. Blocks come in pairs: the second of one may
// have no keys, and is zeros then; pairs without keys are left as they are. Rows: values are
// not turned, scales are the usual ones, and thread blocks from Works on make blocks of
// relative positions, head after head.
template <typename T, int D, bool Exact, bool Rows>
__device__ void pack(const AttentionPack& a) {
	release_dependents();
	if constexpr (Rows && sizeof(T) == sizeof(float)) {
		if (blockIdx.x >= a.Works) {
			const uint32_t at = blockIdx.x - a.Works, count = 2 * a.Blocks;
			const Source<float> s = positions_of(a, at / count, at % count, count, a.Most);
			pack_block<float, D, Exact, false, true>(s, false, a.Packed + static_cast<int64_t>(at) * BlockRows * D, a.PositionFactors + at);
			return;
		}
	}
	const uint32_t at = blockIdx.x / 2, block = at % a.Blocks, slab = at / a.Blocks;
	const uint32_t item = slab / a.Heads, head = slab % a.Heads;
	const uint32_t keys = keys_of(a, item);
	if (block / 2 * 2 * BlockRows >= keys) return;
	const int64_t place = static_cast<int64_t>(at) * BlockRows * D * (Exact ? 2 : 1);
	const bool values = blockIdx.x % 2 != 0;
	const auto source = [&](const uint32_t* p, int64_t row, int64_t of_head, int64_t of_item) -> Source<T> {
		const T* from = reinterpret_cast<const T*>(p);
		return {from + item * of_item + head * of_head, row, block * BlockRows, keys, static_cast<int>(a.Dim), quads_aligned(from, row, of_head, of_item)};
	};
	if constexpr (Rows) {  // one copy of the code, so that it takes few registers
		const Source<T> s = source(values ? a.V : a.K, values ? a.VRow : a.KRow, values ? a.VHead : a.KHead, values ? a.VItem : a.KItem);
		pack_block<T, D, Exact, false, true>(s, values, (values ? a.Values : a.Keys) + place, (values ? a.ValueFactors : a.KeyFactors) + at);
	} else if (values) {
		pack_block<T, D, Exact, true, false>(source(a.V, a.VRow, a.VHead, a.VItem), true, a.Values + place, a.ValueFactors + at);
	} else {
		pack_block<T, D, Exact, false, false>(source(a.K, a.KRow, a.KHead, a.KItem), false, a.Keys + place, a.KeyFactors + at);
	}
}

// A thread block makes one block of relative positions of a head.
template <int D, bool Exact>
__device__ void positions(const AttentionPositions& a) {
	release_dependents();
	const uint32_t block = blockIdx.x % a.Blocks, head = blockIdx.x / a.Blocks;
	const int64_t place = static_cast<int64_t>(blockIdx.x) * BlockRows * D * (Exact ? 2 : 1);
	pack_block<float, D, Exact, false, false>(positions_of(a, head, block, a.Blocks, a.Keys), false, a.Packed + place, a.Factors + blockIdx.x);
}

}  // namespace attention
