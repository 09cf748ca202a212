// Queries as operands of products, and the softmax that runs along with their keys.
#pragma once

#include "attention_parts.cuh"

namespace attention {

// A Slab is a head of an item.
struct Slab {
	const Attention& a;
	uint32_t number, item, head;
	int queries, keys, dim;
	int offset;  // of a query's position from its row

	__device__ Slab(const Attention& a, uint32_t number) : a(a), number(number), item(number / a.Heads), head(number % a.Heads) {
		queries = count_of(a.Lengths, item);
		keys = keys_of(a, item);
		dim = a.Dim;
		offset = (a.Moving ? keys : static_cast<int>(a.Most)) - static_cast<int>(a.Queries);
	}

	__device__ float* row_of(const View& v, int row) const {
		return v.P + item * v.Batch + row * v.Row + static_cast<int64_t>(head) * dim;
	}

	__device__ bool sees(int row, int key) const {
		const int p = row + offset;
		return key < keys && key <= p + a.Right && key >= p - a.Left;
	}

	// add_odd adds values that are not finite, of keys from start up to end, to the output of
	// count rows that see them: products would take them, times 0, to all rows. The rows have
	// been stored, and size threads take part.
	__device__ void add_odd(int first, int count, int start, int end, int thread, int size) const {
		const int last = min(first + count, queries);
		for (int d = thread; d < dim; d += size) {
			for (int j = start; j < end; j++) {
				const int64_t at = item * a.VItem + head * a.VHead + j * a.VRow + d;
				const float v = a.HalfValues ? to_float(reinterpret_cast<const half*>(a.V)[at]) : reinterpret_cast<const float*>(a.V)[at];
				if (finite(v)) continue;
				for (int row = first; row < last; row++) {
					if (sees(row, j)) row_of(a.O, row)[d] += v;
				}
			}
		}
	}

	// store writes rows row and row + 8 of the output, if they are any, with zeros for what is
	// no query.
	template <int D>
	__device__ void store(const float (&o)[D / 2], int row, const float (&share)[2], float unit) const {
		const int t = 2 * (lane_id() % 4);
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int i = row + 8 * r;
			if (i >= static_cast<int>(a.Queries)) continue;
			float* to = row_of(a.O, i) + t;
			const bool pairs = is_aligned(to, 8);
#pragma unroll
			for (int n = 0; n < D / 8; n++) {
				if (8 * n + t >= dim) break;
				float2 v = {0.0f, 0.0f};
				if (i < queries) v = {o[4 * n + 2 * r] * share[r] * unit, o[4 * n + 2 * r + 1] * share[r] * unit};
				if (pairs) {
					store2(to + 8 * n, v);
				} else {
					to[8 * n] = v.x;
					to[8 * n + 1] = v.y;
				}
			}
		}
	}

	// store_quads is store by fours, to rows that begin at multiples of four: half as many
	// stores, for which neighbouring lanes exchange what they have.
	template <int D>
	__device__ void store_quads(const float (&o)[D / 2], int row, const float (&share)[2]) const {
		const int t = lane_id() % 4;
		const bool odd = t % 2;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int i = row + 8 * r;
			float4 v[D / 16];
#pragma unroll
			for (int n = 0; n < D / 16; n++) {
				const float *x = o + 8 * n + 2 * r, *y = x + 4;
				const float2 got = {shfl_xor(odd ? x[0] : y[0], 1), shfl_xor(odd ? x[1] : y[1], 1)};
				v[n] = odd ? float4{got.x, got.y, y[0], y[1]} : float4{x[0], x[1], got.x, got.y};
			}
			const float by = i < queries ? share[r] : 0.0f;
			float* const to = row_of(a.O, i) + 2 * t + 6 * odd;
#pragma unroll
			for (int n = 0; n < D / 16; n++) {
				if (i < static_cast<int>(a.Queries) && 16 * n + 2 * t + 6 * odd < dim) store_global4(to + 16 * n, {v[n].x * by, v[n].y * by, v[n].z * by, v[n].w * by});
			}
		}
	}
};

// The queries of a warp as operands of products: 16 rows of D dimensions, of which a lane
// has parts of rows lane/4 and lane/4 + 8. They stay in registers (Held) or lie in shared
// memory, in the order in which lanes need them.
template <int D, bool Exact, bool Held>
struct QueryRows {
	static constexpr int Parts = Exact ? 2 : 1, Steps = D / 16;
	uint32_t kept[Held ? Parts : 1][Held ? Steps : 1][4];
	uint4* shared;   // of the warp and lane
	float down[2];   // factor of scores, for both rows

	// Numbers of a lane, of both rows, in the order of the fragments.
	using Numbers = float[2][Steps][4];

	// load takes rows of a view, times the sign of Scale; rows that are no queries are 0.
	__device__ void load(const Slab& s, const View& view, int row, uint4* at) {
		Numbers v;
		read(s, view, row, pairs(view), v);
		take(s, v, at);
	}

	// pairs reports whether neighbours of a view are read together.
	static __device__ bool pairs(const View& view) { return is_aligned(view.P, 8) && ((view.Row | view.Batch) & 1) == 0; }

	// read reads the numbers of rows row and row + 8; both says that it may do so by pairs.
	static __device__ void read(const Slab& s, const View& view, int row, bool both, Numbers& v) {
		const int t = lane_id() % 4;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int i = row + 8 * r;
			const bool live = i < s.queries;
			const float* p = live ? s.row_of(view, i) : nullptr;
			if (both) {
#pragma unroll
				for (int h = 0; h < 2 * Steps; h++) {
					const bool has = live && 8 * h + 2 * t < s.dim;
					const float2 x = has ? load2(p + 8 * h + 2 * t) : float2{0.0f, 0.0f};
					v[r][h / 2][h % 2 * 2] = x.x, v[r][h / 2][h % 2 * 2 + 1] = x.y;
				}
			} else {
#pragma unroll
				for (int h = 0; h < 4 * Steps; h++) {
					const int k = h / 2 * 8 + 2 * t + h % 2;
					v[r][h / 4][h % 4] = live && k < s.dim ? p[k] : 0.0f;
				}
			}
		}
	}

	// take makes operands of numbers.
	__device__ void take(const Slab& s, const Numbers& v, uint4* at) {
		float up[2];
		shared = at;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float most = 0.0f;
#pragma unroll
			for (int step = 0; step < Steps; step++) {
#pragma unroll
				for (int e = 0; e < 4; e++) most = fmaxf(most, magnitude(v[r][step][e]));
			}
			const Power power = power_for(warp_max<4>(most));
			up[r] = s.a.Scale < 0.0f ? -power.up : power.up;
			down[r] = power.down * fabsf(s.a.Scale);
		}
#pragma unroll
		for (int step = 0; step < Steps; step++) {
			uint32_t high[4], low[4];
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const float x = v[e % 2][step][e / 2 * 2] * up[e % 2], y = v[e % 2][step][e / 2 * 2 + 1] * up[e % 2];
				high[e] = pack_half(x, y);
				low[e] = pack_half(rest(x), rest(y));
			}
			put(0, step, high);
			if (Exact) put(Parts - 1, step, low);
		}
		if (!Held) __syncwarp();
	}

	__device__ void put(int part, int step, const uint32_t (&w)[4]) {
		if constexpr (Held) {
#pragma unroll
			for (int i = 0; i < 4; i++) kept[part][step][i] = w[i];
		} else {
			shared[(part * Steps + step) * 32] = {w[0], w[1], w[2], w[3]};
		}
	}

	__device__ void get(int part, int step, uint32_t (&w)[4]) const {
		if constexpr (Held) {
#pragma unroll
			for (int i = 0; i < 4; i++) w[i] = kept[part][step][i];
		} else {
			const uint4 v = shared[(part * Steps + step) * 32];
			w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
		}
	}
};

// Weights are what scores become, of two queries of a lane, step by step: powers of two of
// scores less a whole number, base, that is at least as large as the largest yet, so that
// turning sums to a new base is exact. They are at most 2^Most, which leaves halves all
// digits of weights down to 2^−28 of the largest.
//
// Sums of values are in units of a factor of the step, the largest of its Blocks blocks.
template <int Keys>
struct Weights {
	static constexpr int Blocks = Keys > BlockRows ? Keys / BlockRows : 1, Each = Keys / Blocks;
	static constexpr float Most = 14.0f;
	float sum[2] = {}, base[2] = {unseen(), unseen()};
	float unit = 0.0f, largest_unit = 0.0f;
	bool used[Blocks];   // whether the values of a block have a part in the output
	bool odd = false;    // some values are not finite
	float shift[Blocks]; // exponent of what brings a block's values to the unit

	// A lane's scores of key 8·n + 2·(lane%4) + e of a block are s[4·n + e] and, of the
	// second query, s[4·n + 2 + e].
	using Scores = float[Blocks][Each / 2];

	// hide takes scores away that a query does not see.
	static __device__ void hide(const Slab& slab, Scores& s, int row, int key) {
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
#pragma unroll
			for (int i = 0; i < Each / 2; i++) {
				if (!slab.sees(row + i / 2 % 2 * 8, key + b * Each + i / 4 * 8 + 2 * (lane_id() % 4) + i % 2)) s[b][i] = unseen();
			}
		}
	}

	// cut does the same in a third of the instructions, and with more registers: keys before low
	// or from high on, counted from the lane's first. Instructions that run once come from far,
	// and take longer than those of a loop.
	static __device__ void cut(const Slab& slab, Scores& s, int row, int key) {
		const int first = key + 2 * (lane_id() % 4);
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int p = row + 8 * r + slab.offset, low = p - slab.a.Left - first, high = min(slab.keys, p + slab.a.Right + 1) - first;
#pragma unroll
			for (int b = 0; b < Blocks; b++) {
#pragma unroll
				for (int n = 0; n < Each / 8; n++) {
#pragma unroll
					for (int e = 0; e < 2; e++) {
						if (b * Each + n * 8 + e >= high) s[b][4 * n + 2 * r + e] = unseen();
					}
				}
			}
			if (low <= 0) continue;
#pragma unroll
			for (int b = 0; b < Blocks; b++) {
#pragma unroll
				for (int n = 0; n < Each / 8; n++) {
#pragma unroll
					for (int e = 0; e < 2; e++) {
						if (b * Each + n * 8 + e < low) s[b][4 * n + 2 * r + e] = unseen();
					}
				}
			}
		}
	}

	// take_units turns to the units of a step's values, and returns what that makes of sums.
	// Values so much smaller than others that their part cannot be seen are left out.
	__device__ float take_units(const float (&factors)[Blocks]) {
		float next = 0.0f;
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
			odd |= factors[b] < 0.0f;
			next = fmaxf(next, fabsf(factors[b]));
		}
		largest_unit = fmaxf(largest_unit, next);
		const bool tiny = next < largest_unit * 0x1p-60f;
		const float change = tiny || unit == 0.0f ? 1.0f : unit / next;
		if (!tiny) unit = next;
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
			const int exponent = static_cast<int>(bits_of(fabsf(factors[b])) >> 23) - static_cast<int>(bits_of(next) >> 23);
			used[b] = !tiny && exponent >= -60;
			shift[b] = used[b] && Blocks > 1 ? static_cast<float>(exponent) : 0.0f;
		}
		return change;
	}

	// weigh makes weights of scores in place, with a factor for each query and block, and
	// returns what is left of sums.
	__device__ void weigh(Scores& s, const float (&factor)[2][Blocks], float (&fade)[2]) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float most = unseen();
#pragma unroll
			for (int b = 0; b < Blocks; b++) {
				float m = unseen();
#pragma unroll
				for (int n = 0; n < Each / 8; n++) m = fmaxf(m, fmaxf(s[b][4 * n + 2 * r], s[b][4 * n + 2 * r + 1]));
				most = fmaxf(most, m * factor[r][b]);
			}
			most = warp_max<4>(most);
			const float next = fmaxf(base[r], ceilf(most));
			const float from = next == unseen() ? 0.0f : next;
			fade[r] = weight_of(base[r] - from);
			base[r] = next;
			float total = 0.0f;
#pragma unroll
			for (int b = 0; b < Blocks; b++) {
				float part[2] = {};
				const float add = Most + shift[b] - from;
#pragma unroll
				for (int n = 0; n < Each / 8; n++) {
#pragma unroll
					for (int e = 0; e < 2; e++) {
						float& x = s[b][4 * n + 2 * r + e];
						x = weight_of(fmaf(x, factor[r][b], add));
						part[e] += x;
					}
				}
				const float lift = Blocks > 1 ? weight_of(-shift[b]) : 1.0f;
				total = fmaf(part[0] + part[1], lift, total);
			}
			// All lanes of a query have its sum: exchanged here, so that the compiler does not put
			// off the weights until what waits for other products is over.
			sum[r] = fmaf(sum[r], fade[r], warp_sum<4>(total));
		}
	}

	// shares returns what the sums of values are to be multiplied with, beside the unit.
	__device__ void shares(float (&share)[2]) const {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			share[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
		}
	}
};

// A Reach is the keys that a tile of queries sees: in steps from start on up to end, of
// which those before whole_start or beyond whole_end are not seen by all.
struct Reach {
	int start, end, whole_start, whole_end;

	__device__ Reach(const Slab& s, int first, int rows, int step) {
		const Attention& a = s.a;
		end = first < s.queries ? min(s.keys, min(first + rows, s.queries) + s.offset + a.Right) : 0;
		start = max(first + s.offset - a.Left, 0) / step * step;
		whole_end = min(s.keys, first + s.offset + a.Right + 1);
		whole_start = first + rows - 1 + s.offset - a.Left;
	}
	__device__ bool ragged(int key, int step) const { return key + step > whole_end || key < whole_start; }
};

// factor_of returns the factor of scores of a query and a block of keys, which does not
// make NaN of scores that are not seen.
__device__ inline float factor_of(float query, float key) { return fminf(fmaxf(query * key, 0x1p-126f), 0x1p127f); }

}  // namespace attention
