// What becomes of the sums of wide products: from the registers to memory, where results are
// what most are.
#pragma once

#include "sm90.cuh"
#include "tile_store.cuh"

namespace tile {

// A WidePlace is where a wide tile lies.
struct WidePlace {
	uint32_t item, row, column;  // row within the item; beyond its end if there is nothing
};

// The results of a warp: 16 rows of a tile, in pieces of 32 columns. As products leave them, a
// lane has two columns of each eight, of rows lane/4 and lane/4 + 8.
//
// No products run while a block writes, so nothing should wait for memory then: what results
// need beside the sums is fetched before the products. Lanes need scales and biases of other
// columns than those that they fetch, and exchange them through a place of shared memory.
template <int TileColumns, int Products>
struct WideResults {
	static constexpr bool Halves = Products == 1;  // products of split operands have F32 results
	static constexpr int Rows = 16, Columns = 32, Sums = Rows * Columns / 32;
	static constexpr int Pieces = (TileColumns + Columns - 1) / Columns;  // the last may be cut off, after eight columns or more
	static constexpr int PlaceSize = Rows * Columns;  // floats; as many as scales and biases of 256 columns
	static_assert(TileColumns % 8 == 0 && 2 * Pieces * Columns <= PlaceSize, "columns of a tile");

	WidePlace place;
	uint32_t first, rows;                  // within the item
	bool usual;                            // is_usual
	float scales[Pieces], biases[Pieces];  // of every 32nd column from the lane's on
	float row[2], norm[2];                 // scale and norm of the lane's two rows

	// The constructor fetches that.
	__device__ WideResults(const Tile& a, const WidePlace& p, uint32_t warp)
	    : place(p), first(p.row + warp * Rows), rows(min((uint32_t)Rows, a.ItemRows > first ? a.ItemRows - first : 0)) {
		if (rows == 0) return;
		usual = is_usual(a);
		if (!usual) return;
#pragma unroll
		for (int i = 0; i < Pieces; i++) {
			const uint32_t c = p.column + i * 32 + lane_id();
			const bool in = c < end(a);
			scales[i] = a.BScale != nullptr && in ? a.BScale[c] : 1.0f;
			biases[i] = a.Bias != nullptr && in ? a.Bias[c] : 0.0f;
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const uint32_t number = p.item * a.ItemRows + first + min(lane_id() / 4 + 8 * r, rows - 1);
			row[r] = a.AScale[a.ScaleRows == 1 ? number : p.item];
			norm[r] = a.Scales != nullptr ? a.Norms[number] : 0.0f;
		}
	}

	// end returns the first column that is not one of the tile's.
	__device__ uint32_t end(const Tile& a) const { return min(a.Columns, place.column + TileColumns); }

	// near reports whether all scales are such that sums may be multiplied by that of the row first.
	// It is not asked before the products, which would wait for the scales then.
	__device__ bool near() const {
		bool ok = row[0] <= 0x1p60f && row[1] <= 0x1p60f;
#pragma unroll
		for (int i = 0; i < Pieces; i++) ok &= scales[i] >= 0x1p-60f && scales[i] <= 0x1p14f;
		return !warp_ballot(!ok);
	}

	// is_usual reports whether results need no more than scales, biases and an epilogue that the
	// networks have, and can be stored as vectors.
	__device__ static bool is_usual(const Tile& a) {
		const uint32_t kind = a.Epilogue.Kind;
		const bool halves = a.Scales != nullptr, light = kind == KindNone || kind == KindReLU || kind == KindLeaky;
		if (!light && kind != KindGELU && kind != KindSiLU && (kind != KindResidual || halves)) return false;
		if (a.Dual != nullptr && (halves || a.DualFrom % 4 || a.DualTo % 4 || a.DualShift % 4)) return false;
		return a.Residual.P == nullptr && a.LengthStride == 0 && (halves || (quads(a) && a.Columns % 4 == 0));
	}

	// has reports whether a row of the lane's two is one of the product.
	__device__ bool has(int r) const { return lane_id() / 4 + 8 * r < rows; }

	// to returns where the first of the four columns goes that a lane stores of each 16, of a row
	// of its two.
	__device__ float* to(const Tile& a, int r) const { return line(a, r) + place.column + 8 * (lane_id() % 2) + lane_id() % 4 / 2 * 4; }
	__device__ float* line(const Tile& a, int r) const { return a.C.P + place.item * a.C.Batch + (first + lane_id() / 4 + 8 * r) * a.C.Row; }

	// write stores the results for the sums.
	__device__ void write(const Tile& a, float* mine, const float (&sum)[TileColumns / 2]) const {
		if (rows == 0) return;
		if (!usual || !near()) return write_rows(a, mine, sum);
#pragma unroll
		for (int i = 0; i < Pieces; i++) {
			mine[i * 32 + lane_id()] = scales[i];
			mine[(Pieces + i) * 32 + lane_id()] = biases[i];
		}
		__syncwarp();
		if (a.BScale != nullptr) {
			write_usual<true>(a, mine, sum);
			write_again<true>(a, mine, sum);
		} else {
			write_usual<false>(a, mine, sum);
			write_again<false>(a, mine, sum);
		}
		__syncwarp();
	}

	// write_usual stores usual results. Scaled: columns have scales, which are else all 1.
	template <bool Scaled>
	__device__ void write_usual(const Tile& a, const float* mine, const float (&sum)[TileColumns / 2]) const {
		const bool whole = place.column + TileColumns <= a.Columns;
		if constexpr (Halves) {
			if (a.Scales != nullptr && a.Epilogue.Kind == KindNone) return write_halves<Scaled, true>(a, mine, sum);
			if (a.Scales != nullptr) return write_halves<Scaled, false>(a, mine, sum);
		}
		if (whole && a.Epilogue.Kind == KindNone) {
			write_light<Scaled, false>(a, mine, sum);
		} else if (TileColumns <= 192 && whole && a.Epilogue.Kind == KindResidual) {  // else registers are too few
			write_light<Scaled, TileColumns <= 192>(a, mine, sum);
		} else {
			write_pieces<Scaled>(a, mine, sum, {place.column, end(a), 0, a.Epilogue});
		}
	}

	// write_again stores those of the tile's columns that are given again, with other biases.
	template <bool Scaled>
	__device__ void write_again(const Tile& a, float* mine, const float (&sum)[TileColumns / 2]) const {
		if (a.Dual == nullptr || a.DualFrom >= end(a) || a.DualTo <= place.column) return;
		__syncwarp();
#pragma unroll
		for (int i = 0; i < Pieces; i++) {
			const uint32_t c = place.column + i * 32 + lane_id();
			mine[(Pieces + i) * 32 + lane_id()] = c >= a.DualFrom && c < a.DualTo ? a.Dual[c - a.DualFrom] : 0.0f;
		}
		__syncwarp();
		write_pieces<Scaled>(a, mine, sum, {a.DualFrom, min(a.DualTo, end(a)), a.DualShift, {KindNone, 0.0f}});
	}

	// has_block reports whether the tile has the block of eight columns of a piece.
	__device__ static bool has_block(int piece, int block) { return piece * Columns + 8 * block < TileColumns; }

	// scaled returns the results of a piece but for the epilogue.
	template <bool Scaled>
	__device__ static void scaled(const float* mine, const float (&sum)[TileColumns / 2], const float (&row)[2], int piece, float (&v)[Sums]) {
#pragma unroll
		for (int n = 0; n < Columns / 8; n++) {
			if (!has_block(piece, n)) {
				v[4 * n] = v[4 * n + 1] = v[4 * n + 2] = v[4 * n + 3] = 0.0f;
				continue;
			}
			const float* at = mine + piece * Columns + 8 * n + 2 * (lane_id() % 4);
			const float2 scale = Scaled ? load2(at) : float2{}, bias = load2(at + Pieces * Columns);
#pragma unroll
			for (int r = 0; r < 2; r++) {
				const int j = 4 * n + 2 * r;
				const float x = sum[piece * Sums + j], y = sum[piece * Sums + j + 1];
				v[j] = Scaled ? fmaf(x * row[r], scale.x, bias.x) : fmaf(x, row[r], bias.x);
				v[j + 1] = Scaled ? fmaf(y * row[r], scale.y, bias.y) : fmaf(y, row[r], bias.y);
			}
		}
	}

	// pick is scaled for a number that is known only as the kernel runs: of pieces Low to High - 1.
	template <bool Scaled, int Low = 0, int High = Pieces>
	__device__ static void pick(const float* mine, const float (&sum)[TileColumns / 2], const float (&row)[2], int piece, float (&v)[Sums]) {
		constexpr int Middle = (Low + High) / 2;
		if constexpr (High - Low == 1) {
			float scale[2] = {row[0], row[1]};
			wgmma_keep(scale);  // else all pieces would be scaled before one is picked
			scaled<Scaled>(mine, sum, scale, Low, v);
			wgmma_keep(v);  // a branch, where the compiler would choose between all pieces
		} else if (piece < Middle) {
			pick<Scaled, Low, Middle>(mine, sum, row, piece, v);
		} else {
			pick<Scaled, Middle, High>(mine, sum, row, piece, v);
		}
	}

	// activate applies an epilogue but for the residual. Near: results become halves.
	template <bool Near>
	__device__ static void activate(const Epilogue& e, float (&v)[Sums]) {
		if (e.Kind == KindGELU) {
#pragma unroll
			for (int j = 0; j < Sums; j++) v[j] = gelu(v[j]);
		} else if (e.Kind == KindSiLU) {
#pragma unroll
			for (int j = 0; j < Sums; j++) v[j] = Near ? silu_near(v[j]) : silu(v[j]);
		} else if (e.Kind == KindReLU) {
#pragma unroll
			for (int j = 0; j < Sums; j++) v[j] = v[j] < 0.0f ? 0.0f : v[j];
		} else if (e.Kind == KindLeaky) {
#pragma unroll
			for (int j = 0; j < Sums; j++) v[j] = v[j] < 0.0f ? e.Alpha * v[j] : v[j];
		}
	}

	// exchange makes the F32 of a piece: lanes that are neighbours exchange pairs of columns, so that
	// each has four that follow each other: of row 0 the first and the second 16, then of row 1.
	__device__ static void exchange(const float (&v)[Sums], float4 (&q)[4]) {
		const bool odd = lane_id() % 2;
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float *low = v + 8 * (i % 2) + 2 * (i / 2), *high = low + 4;
			const float x = shfl_xor(odd ? low[0] : high[0], 1), y = shfl_xor(odd ? low[1] : high[1], 1);
			q[i] = odd ? float4{x, y, high[0], high[1]} : float4{low[0], low[1], x, y};
		}
	}

	// write_light writes results without an epilogue, or adds them to what was there; all columns
	// of the tile are there.
	template <bool Scaled, bool Adds>
	__device__ void write_light(const Tile& a, const float* mine, const float (&sum)[TileColumns / 2]) const {
		constexpr int Ahead = 2;  // pieces of what is added to that are on their way
		float* const c[2] = {to(a, 0), to(a, 1)};
		const bool own[2] = {has(0), has(1)};
		const float f = a.Epilogue.Alpha;
		float4 was[Ahead + 1][4];
		const auto there = [&](int piece, int i) {  // vector i of a piece
			const int first = i % 2 * 2;            // of two blocks, of which odd lanes have the second
			return own[i / 2] && has_block(piece, first) && (has_block(piece, first + 1) || lane_id() % 2 == 0);
		};
		const auto load = [&](float4 (&w)[4], int piece) {
#pragma unroll
			for (int i = 0; i < 4; i++) w[i] = there(piece, i) ? load4(c[i / 2] + piece * Columns + i % 2 * 16) : float4{};
		};
		if (Adds) {
#pragma unroll
			for (int i = 0; i < Ahead && i < Pieces; i++) load(was[i], i);
		}
#pragma unroll
		for (int piece = 0; piece < Pieces; piece++) {
			if (Adds && piece + Ahead < Pieces) load(was[(piece + Ahead) % (Ahead + 1)], piece + Ahead);
			float v[Sums];
			float4 q[4];
			scaled<Scaled>(mine, sum, row, piece, v);
			exchange(v, q);
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const float4 w = was[piece % (Ahead + 1)][i];
				if (Adds) q[i] = {fmaf(f, q[i].x, w.x), fmaf(f, q[i].y, w.y), fmaf(f, q[i].z, w.z), fmaf(f, q[i].w, w.w)};
				store_global4(c[i / 2] + piece * Columns + i % 2 * 16, q[i], there(piece, i));
			}
		}
	}

	// Those are columns that write_pieces writes, so many elements further on.
	struct Those {
		uint32_t begin, end;
		int32_t shift;
		Epilogue epilogue;
	};

	// write_pieces writes results of some columns with any epilogue of the usual ones.
	template <bool Scaled>
	__device__ void write_pieces(const Tile& a, const float* mine, const float (&sum)[TileColumns / 2], const Those& those) const {
		float* const c[2] = {to(a, 0) + those.shift, to(a, 1) + those.shift};
		const uint32_t from = place.column + 8 * (lane_id() % 2) + lane_id() % 4 / 2 * 4;
#pragma unroll 1
		for (int piece = 0; piece < Pieces && place.column + piece * Columns < those.end; piece++) {
			if (place.column + (piece + 1) * Columns <= those.begin) continue;
			float v[Sums];
			float4 q[4];
			pick<Scaled>(mine, sum, row, piece, v);
			activate<false>(those.epilogue, v);
			exchange(v, q);
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const uint32_t column = from + piece * Columns + i % 2 * 16;
				const bool there = has(i / 2) && column >= those.begin && column < those.end;
				float* const p = c[i / 2] + piece * Columns + i % 2 * 16;
				if (those.epilogue.Kind == KindResidual && there) {
					const float4 w = load4(p);
					const float f = those.epilogue.Alpha;
					q[i] = {fmaf(f, q[i].x, w.x), fmaf(f, q[i].y, w.y), fmaf(f, q[i].z, w.z), fmaf(f, q[i].w, w.w)};
				}
				store_global4(p, q[i], there);
			}
		}
	}

	// exchange turns four words of each of four lanes around: word i of lane t becomes word t
	// of lane i.
	__device__ static void exchange(uint32_t (&w)[4]) {
		const bool odd = lane_id() & 1, high = lane_id() & 2;
#pragma unroll
		for (int i = 0; i < 4; i += 2) {
			const uint32_t got = shfl_xor(odd ? w[i] : w[i + 1], 1);
			w[i] = odd ? got : w[i];
			w[i + 1] = odd ? w[i + 1] : got;
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const uint32_t got = shfl_xor(high ? w[i] : w[i + 2], 2);
			w[i] = high ? got : w[i];
			w[i + 2] = high ? w[i + 2] : got;
		}
	}

	// write_halves leaves halves, and the scales of their rows, to the product that reads them.
	// Columns come in eights. Plain: without an epilogue.
	template <bool Scaled, bool Plain>
	__device__ void write_halves(const Tile& a, const float* mine, const float (&sum)[TileColumns / 2]) const {
		const uint32_t from = 8 * (lane_id() % 4);
		half* c[2];
		float factor[2];
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const Scale s = scale_of(fminf(fmaf(norm[r], a.Reach, a.Lift), a.Most));
			factor[r] = s.factor;
			c[r] = reinterpret_cast<half*>(line(a, r)) + place.column + from;
			if (place.column + from == 0 && has(r)) a.Scales[place.item * a.ItemRows + first + lane_id() / 4 + 8 * r] = s.inverse;
		}
#pragma unroll Plain ? Pieces : 1
		for (int piece = 0; piece < Pieces; piece++) {
			if (!Plain && place.column + piece * Columns >= a.Columns) break;
			float v[Sums];
			if (Plain) {
				scaled<Scaled>(mine, sum, row, piece, v);
			} else {
				pick<Scaled>(mine, sum, row, piece, v);
				activate<true>(a.Epilogue, v);
			}
			const bool there = place.column + piece * Columns + from < end(a);
#pragma unroll
			for (int r = 0; r < 2; r++) {
				uint32_t w[4];
#pragma unroll
				for (int n = 0; n < 4; n++) w[n] = pack_half(v[4 * n + 2 * r] * factor[r], v[4 * n + 2 * r + 1] * factor[r]);
				exchange(w);
				store_global4(reinterpret_cast<float*>(c[r] + piece * Columns), {float_of(w[0]), float_of(w[1]), float_of(w[2]), float_of(w[3])},
				              there && has(r));
			}
		}
	}

	// A row of a piece is written by quarters of four rows in what follows: eight lanes have a
	// row, and each four of its columns. Groups of eight columns are exchanged, so that what lanes
	// write at once lies in different banks.
	__device__ static uint32_t row_at(uint32_t i) { return lane_id() / 8 + 4 * i; }
	__device__ static uint32_t at(uint32_t row, uint32_t column) { return row * Columns + (column ^ (row & 3) * 8); }
	__device__ static void turn(float* to, const float (&sum)[TileColumns / 2], int piece) {
		const uint32_t g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
		for (int n = 0; n < Columns; n += 8) {
			if (!has_block(piece, n / 8)) continue;
			const float* s = sum + piece * Sums + n / 2;
			store2(to + at(g, n + 2 * t), {s[0], s[1]});
			store2(to + at(g + 8, n + 2 * t), {s[2], s[3]});
		}
	}

	// write_rows writes results of any kind, through shared memory.
	__device__ void write_rows(const Tile& a, float* mine, const float (&sum)[TileColumns / 2]) const {
#pragma unroll 1
		for (uint32_t piece = 0; piece < Pieces; piece++) {
			const uint32_t column = place.column + piece * Columns, mine4 = column + lane_id() % 8 * 4;
			if (column >= a.Columns) return;
			const Quad q = quad_of(a, mine4 < end(a) ? mine4 : a.Columns);
#pragma unroll
			for (int i = 0; i < Pieces; i++) {
				if (piece == i) turn(mine, sum, i);
			}
			__syncwarp();
			store_rows<4, 1>(
			    a, q, row_at(0), rows, [&](uint32_t i) { return row_of(a, place.item, first + i); },
			    [&](uint32_t i) { return load4(mine + at(i, lane_id() % 8 * 4)); });
			__syncwarp();
		}
	}
};

}  // namespace tile
