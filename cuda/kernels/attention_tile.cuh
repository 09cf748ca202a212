// The tile of the kernel for many queries: what it keeps in shared memory, and products.
#pragma once

#include "attention_queries.cuh"

namespace attention {

// Halves in shared memory, as packed blocks have them: Lines of Width halves in chunks of
// 8, exchanged so that eight lines have the same chunk in different banks.
template <int Width>
__device__ inline int place_of(int line, int chunk) {
	static_assert(Width == 64 || Width == 32, "as far as blocks go");
	return line * Width + ((Width == 64 ? chunk ^ (line & 7) : chunk ^ (line >> 1 & 3)) * 8);
}

// load_pair loads the second operand of two products: lines from line on, 16 of them, of
// which the product's columns are made, at the 16 elements from chunk on.
template <int Width>
__device__ inline void load_pair(uint32_t (&b)[4], const half* from, int line, int chunk) {
	const int lane = lane_id();
	ldmatrix_x4(b, from + place_of<Width>(line + lane % 8 + lane / 16 * 8, chunk + lane / 8 % 2));
}

// multiply_pair adds the products of two parts of operands to c, those of the small parts
// to rest.
template <bool Exact>
__device__ inline void multiply_pair(float (&c)[2][4], float (&rest)[2][4], const uint32_t (&a)[2][4], const uint32_t (&b)[2][4]) {
#pragma unroll
	for (int n = 0; n < 2; n++) {
		const uint32_t high[2] = {b[0][2 * n], b[0][2 * n + 1]};
		if (Exact) {
			const uint32_t low[2] = {b[1][2 * n], b[1][2 * n + 1]};
			mma_f16(rest[n], a[1], high);
			mma_f16(rest[n], a[0], low);
		}
		mma_f16(c[n], a[0], high);
	}
}

template <int D, int Keys, int Warps, bool Exact, bool Relative, bool Held>
struct Tile : Slab {
	static constexpr int Rows = 16 * Warps, Parts = Exact ? 2 : 1, Threads = 32 * Warps;
	static constexpr int Part = Keys * D;      // halves of keys, values or positions of a step
	static constexpr int Stage = Parts * Part;
	static constexpr int Window = 64 / Keys + 1;  // stages of positions that a step needs
	static constexpr int Band = Keys + 16;        // positions that a warp needs
	// A row of the band: odd, so that lanes write different banks, and 25 more than a
	// multiple of 32, so that they read different ones along the diagonal.
	static constexpr int Stride = Band / 32 * 32 + 25;
	static_assert(Stride >= Band && (!Relative || Rows == 64), "as the window is");
	static constexpr int Unrolled = Held ? D / 16 : 2;  // steps; registers are numbered, so that all must be
	using Queries = QueryRows<D, Exact, Held>;

	half *key_tile, *value_tile, *position_tile;
	float* band;  // of the warp
	uint4* kept;
	const half *packed_keys, *packed_values, *packed_positions;  // of the head
	const float *key_factors, *value_factors, *position_factors;
	int first;

	__device__ Tile(const Slab& s, int first) : Slab(s), first(first) {
		key_tile = dynamic_shared<half>();
		value_tile = key_tile + Stage;
		position_tile = value_tile + Stage;
		half* next = position_tile + (Relative ? Window * Stage : 0);
		kept = reinterpret_cast<uint4*>(next);
		band = reinterpret_cast<float*>(next + (Held ? 0 : (Relative ? 2 : 1) * Parts * Rows * D)) + warp_id() * 16 * Stride;
		const int64_t block = static_cast<int64_t>(number) * a.Blocks;
		packed_keys = a.Keys + block * (BlockRows * D * Parts);
		packed_values = a.Values + block * (BlockRows * D * Parts);
		key_factors = a.KeyFactors + block;
		value_factors = a.ValueFactors + block;
		if constexpr (Relative) {
			const int64_t position = static_cast<int64_t>(head) * 2 * a.Blocks;
			packed_positions = a.Positions + position * (BlockRows * D * Parts);
			position_factors = a.PositionFactors + position;
		}
	}

	// kept_at returns where the warp's and lane's queries lie, those of Q2 behind those of Q.
	__device__ uint4* kept_at(int which) const {
		constexpr int Warp = Parts * (D / 16) * 32;
		return kept + (which * Warps + warp_id()) * Warp + lane_id();
	}

	// fetch_panels copies rows of a block of keys or positions, from row on.
	__device__ void fetch_panels(half* to, const half* block, int row) const {
#pragma unroll
		for (int part = 0; part < Parts; part++) {
			for (int i = threadIdx.x; i < Part / 8; i += Threads) {
				const int panel = i / (Keys * 8), rest = i % (Keys * 8);
				copy_async<16>(to + part * Part + i * 8, block + part * BlockRows * D + panel * BlockRows * 64 + row * 64 + rest * 8);
			}
		}
	}

	// fetch_keys begins to copy the keys of a step, and what it needs of the positions: all
	// of the window at first, then what is new.
	__device__ void fetch_keys(int key, bool all) const {
		fetch_panels(key_tile, packed_keys + static_cast<int64_t>(key / BlockRows) * (BlockRows * D * Parts), key % BlockRows);
		if constexpr (Relative) {
			for (int u = all ? 0 : Window - 1; u < Window; u++) {
				const int at = stretch(key) + u;
				fetch_panels(position_tile + at % Window * Stage,
				             packed_positions + static_cast<int64_t>(at * Keys / BlockRows) * (BlockRows * D * Parts), at * Keys % BlockRows);
			}
		}
		copy_commit();
	}

	// stretch returns the number of the first stage of positions that a step needs. The
	// distances of blocks begin at −64·Blocks, those of the step at key − first − 64.
	__device__ int stretch(int key) const { return (key - first - 64 + BlockRows * static_cast<int>(a.Blocks)) / Keys; }

	__device__ void fetch_values(int key) const {
		const half* block = packed_values + static_cast<int64_t>(key / BlockRows) * (BlockRows * D * Parts);
		const int chunk = key % BlockRows / 8;
#pragma unroll
		for (int part = 0; part < Parts; part++) {
			for (int i = threadIdx.x; i < Part / 8; i += Threads) {
				const int line = i / (Keys / 8), c = i % (Keys / 8);
				copy_async<16>(value_tile + part * Part + place_of<Keys>(line, c), block + part * BlockRows * D + place_of<64>(line, chunk + c));
			}
		}
		copy_commit();
	}

	// products_of multiplies queries with 16 rows of panels.
	__device__ void products_of(float (&c)[2][4], const Queries& q, const half* panels, int line) const {
		float small[2][4] = {};
#pragma unroll
		for (int n = 0; n < 2; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) c[n][e] = 0.0f;
		}
#pragma unroll(Unrolled)
		for (int step = 0; step < D / 16; step++) {
			uint32_t x[2][4], b[2][4];
#pragma unroll
			for (int part = 0; part < Parts; part++) {
				q.get(part, step, x[part]);
				load_pair<64>(b[part], panels + part * Part + step / 4 * (Keys * 64), line, step % 4 * 2);
			}
			multiply_pair<Exact>(c, small, x, b);
		}
		if constexpr (Exact) {
#pragma unroll
			for (int n = 0; n < 2; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) c[n][e] += small[n][e];
			}
		}
	}

	__device__ void scores(float (&s)[Keys / 2], const Queries& q) const {
		// Steps outside, so that products in flight have sums of their own.
		float small[Exact ? Keys / 16 : 1][2][4] = {};
		float c[Keys / 16][2][4] = {};
#pragma unroll(Unrolled)
		for (int step = 0; step < D / 16; step++) {
			uint32_t x[2][4];
#pragma unroll
			for (int part = 0; part < Parts; part++) q.get(part, step, x[part]);
#pragma unroll
			for (int n = 0; n < Keys / 16; n++) {
				uint32_t b[2][4];
#pragma unroll
				for (int part = 0; part < Parts; part++) load_pair<64>(b[part], key_tile + part * Part + step / 4 * (Keys * 64), 16 * n, step % 4 * 2);
				multiply_pair<Exact>(c[n], small[Exact ? n : 0], x, b);
			}
		}
#pragma unroll
		for (int n = 0; n < Keys / 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) s[4 * n + e] = Exact ? c[n / 2][n % 2][e] + small[Exact ? n / 2 : 0][n % 2][e] : c[n / 2][n % 2][e];
		}
	}

	// relate turns scores to exponents of two and adds those of relative positions. Of a
	// warp, query r and key j have distance key + j − first − 16·warp − r: column
	// j − r + 16 of the products with a band of Keys + 16 positions, which begin 48 − 16·warp
	// from where the step's begin.
	__device__ void relate(float (&s)[Keys / 2], const float (&factor)[2][1], const Queries& q2, int key) const {
		const int lane = lane_id(), g = lane / 4, t = lane % 4, from = stretch(key);
		const int line = 48 - 16 * static_cast<int>(warp_id());
		__syncwarp();  // the band before has been read
#pragma unroll 1  // registers are scarce
		for (int n = 0; n < Band / 16; n++) {
			const int at = line + 16 * n, stage = from + at / Keys;
			float c[2][4];
			products_of(c, q2, position_tile + stage % Window * Stage, at % Keys);
			const float down = position_factors[stage * Keys / BlockRows];
#pragma unroll
			for (int e = 0; e < 4; e++) {
				float* to = band + (g + e / 2 * 8) * Stride + 16 * n + 2 * t + e % 2;
				const float f = q2.down[e / 2] * down;
				to[0] = c[0][e] * f;
				to[8] = c[1][e] * f;
			}
		}
		__syncwarp();
#pragma unroll
		for (int n = 0; n < Keys / 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int r = g + e / 2 * 8;
				s[4 * n + e] = fmaf(s[4 * n + e], factor[e / 2][0], band[r * Stride + 8 * n + 2 * t + e % 2 - r + 16]);
			}
		}
	}

	// weigh adds values, weighted with what s holds, to o.
	__device__ void weigh(float (&o)[D / 2], const float (&s)[Keys / 2]) const {
		uint32_t p[Keys / 16][2][4];
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int at = 4 * (2 * k + e / 2) + e % 2 * 2;
				const float x = s[at], y = s[at + 1];
				p[k][0][e] = pack_half(x, y);
				if (Exact) p[k][1][e] = pack_half(rest(x), rest(y));
			}
		}
#pragma unroll
		for (int n = 0; n < D / 16; n++) {
			float c[2][4], small[2][4] = {};
#pragma unroll
			for (int e = 0; e < 4; e++) {
				c[0][e] = Exact ? 0.0f : o[8 * n + e];
				c[1][e] = Exact ? 0.0f : o[8 * n + 4 + e];
			}
#pragma unroll
			for (int k = 0; k < Keys / 16; k++) {
				uint32_t b[2][4];
#pragma unroll
				for (int part = 0; part < Parts; part++) load_pair<Keys>(b[part], value_tile + part * Part, 16 * n, 2 * k);
				multiply_pair<Exact>(c, small, p[k], b);
			}
#pragma unroll
			for (int e = 0; e < 4; e++) {
				if (Exact) {  // a chain of few products, which the matrix units cut off
					o[8 * n + e] += c[0][e] + small[0][e];
					o[8 * n + 4 + e] += c[1][e] + small[1][e];
				} else {
					o[8 * n + e] = c[0][e];
					o[8 * n + 4 + e] = c[1][e];
				}
			}
		}
	}
};

}  // namespace attention
