// Conv1D on tensor cores, from the samples as they are: for long kernels over few channels.
//
// Rows of the left operand are windows, which overlap: row t has the elements from t·S on, S
// being the stride times the channels. So it is never laid out: a stretch of the input that
// many windows share is taken into shared memory once, as F16, and what a product needs is
// loaded from there. Such loads begin at multiples of eight elements; where S is none there
// are several copies of the stretch, each shifted against the one before, so that every
// window begins at such a place in one of them. Where S is a multiple of sixteen, eight
// elements lie unused behind each S, so that windows begin in different banks.
//
// Outputs are maxima of Pool steps, 3 or 1. Of 3, each is in a product of its own, in the
// same place, so that a thread has all of them.
//
// Values are scaled by a power of two that follows from the largest of a piece: the outputs
// of an item, or as many of them as a tile has. Tiles begin at multiples of their size,
// whatever part of an item is wanted, so that an output always has the same bits. If
// operands are split, sums are made as in tile.cuh, in chains of 32 products.
#pragma once

#include "conv.cuh"
#include "epilogue.cuh"
#include "fragment.cuh"
#include "tile_prepare.cuh"
#include "tile_store.cuh"

namespace conv1d {

// A block has the weights of Columns channels in shared memory and goes through tiles of 192
// steps. Each of its warps has a quarter of the steps and half of the channels.
template <int Columns, int Products>
struct Stretch {
	static constexpr int Threads = 256, M = 3, N = Columns / 16, Parts = Products == 3 ? 2 : 1;
	using Sums = float[M][N][4];

	const ConvStretch& a;
	const uint32_t span, band;  // S; the first channel
	half *right, *left;         // [Parts][Columns][WeightsPitch], [Parts][copies][CopyPitch]
	float *scales, *biases;     // of the channels
	float* inverses;            // of the scales of the pieces

	__device__ Stretch(const ConvStretch& args, uint32_t number) : a(args), span(args.Stride * args.In), band(number * Columns) {
		right = dynamic_shared<half>();
		left = right + Parts * Columns * a.WeightsPitch;
		scales = reinterpret_cast<float*>(left + Parts * (8 / a.Grain) * a.CopyPitch);
		biases = scales + Columns;
		inverses = biases + Columns;
	}

	// weigh takes the weights, zeros beyond the last channel and product.
	__device__ void weigh() const {
		const uint32_t eights = a.Padded / 8;
		for (uint32_t i = threadIdx.x; i < Columns * eights; i += Threads) {
			const uint32_t row = i / eights, k = i % eights * 8;
			const bool there = band + row < a.Columns && k < a.Depth;
			const int64_t from = there ? (int64_t)(band + row) * a.WeightsRow + k : 0;
			half* to = right + row * a.WeightsPitch + k;
			copy_async<16>(to, a.High + from, there ? 16 : 0);
			if (Products == 3) copy_async<16>(to + Columns * a.WeightsPitch, a.Low + from, there ? 16 : 0);
		}
		copy_commit();
		for (uint32_t i = threadIdx.x; i < Columns; i += Threads) {
			const bool there = band + i < a.Columns;
			scales[i] = there && a.Scales != nullptr ? a.Scales[band + i] : 1.0f;
			biases[i] = there && a.Bias != nullptr ? a.Bias[band + i] : 0.0f;
		}
	}

	// A Piece is where a piece of a tile comes from.
	struct Piece {
		uint32_t item, first;  // its first output
		uint32_t length;       // steps of the item
		int32_t start, count;  // the step of its first element; elements that outputs need
		const float* x;
	};

	__device__ Piece piece_of(uint32_t tile, uint32_t number) const {
		Piece p;
		const uint32_t unit = tile * a.Pieces + number;
		p.item = unit / a.Tiles;
		p.first = (a.FirstTile + unit % a.Tiles) * a.PieceRows;
		p.length = 0;
		p.start = (int32_t)((int64_t)p.first * a.Pool * a.Stride - a.PadLeft);
		p.count = 0;
		p.x = a.X.P;
		if (p.item >= a.Items) return p;
		p.length = count_of(a.Lengths, p.item);
		p.count = (int32_t)((min(a.PieceRows, a.Total - p.first) * a.Pool - 1) * span + a.Kernel * a.In);
		p.x += (int64_t)p.item * a.X.Batch;
		return p;
	}

	// element returns an element of a piece, zero beyond the ends of the item.
	__device__ float element(const Piece& p, int32_t i) const {
		if (i >= p.count) return 0.0f;
		const int32_t over = i / (int32_t)a.In, length = (int32_t)p.length;
		int32_t step = p.start + over;
		if (a.Reflect) {
			if (step < 0) step = -step;
			if (step >= length) step = 2 * (length - 1) - step;
		}
		return step >= 0 && step < length ? p.x[step * a.X.Row + (i - over * (int32_t)a.In)] : 0.0f;
	}

	// four returns four elements from a multiple of four on.
	__device__ float4 four(const Piece& p, int32_t i) const {
		const int64_t at = (int64_t)p.start * a.In + i;
		const float* from = p.x + at;
		if (a.Linear && i + 4 <= p.count && at >= 0 && at + 4 <= (int64_t)p.length * a.In && is_aligned(from, 16)) return load4(from);
		float4 v{};
		if (i >= p.count) return v;
#pragma unroll 1
		for (int32_t j = 0; j < 4; j++) v = {v.y, v.z, v.w, element(p, i + j)};
		return v;
	}

	// place returns where an element of a piece is in a copy that is not shifted.
	__device__ uint32_t place(uint32_t i) const { return a.Spaced ? i + i / span * 8 : i; }

	// keep stores two halves at an even place of a copy, and what rounding to them left.
	__device__ void keep(uint32_t copy, uint32_t at, uint2 parts) const {
		half* to = left + copy * a.CopyPitch + at;
		*reinterpret_cast<uint32_t*>(to) = parts.x;
		if (Products == 3) *reinterpret_cast<uint32_t*>(to + 8 / a.Grain * a.CopyPitch) = parts.y;
	}

	// narrow makes F16 of four elements of a piece that begins at base.
	__device__ void narrow(const Piece& p, uint32_t base, uint32_t i, float4 v, float factor) const {
		v = {v.x * factor, v.y * factor, v.z * factor, v.w * factor};
		const uint2 one = tile::parts(v.x, v.y), two = tile::parts(v.z, v.w);
		if (a.Grain == 8) {
			half* to = left + base + place(i);
			*reinterpret_cast<uint2*>(to) = {one.x, two.x};
			if (Products == 3) *reinterpret_cast<uint2*>(to + a.CopyPitch) = {one.y, two.y};
			return;
		}
		for (uint32_t copy = 0, shift = 0; shift < 8; copy += max(2 / a.Grain, 1u), shift += max(a.Grain, 2u)) {
			if (i >= shift) keep(copy, base + i - shift, one);
			if (i + 2 >= shift) keep(copy, base + i + 2 - shift, two);
		}
		if (a.Grain > 1) return;
		const uint2 odd = tile::parts(v.y, v.z), last = tile::parts(v.w, element(p, i + 4) * factor);
		for (uint32_t shift = 1; shift < 8; shift += 2) {
			if (i + 1 >= shift) keep(shift, base + i + 1 - shift, odd);
			if (i + 3 >= shift) keep(shift, base + i + 3 - shift, last);
		}
	}

	// take finds the scale of a piece and makes F16 of it, for one of Lanes threads. Held fours
	// are loaded together; what does not fit these registers is loaded twice.
	template <int Lanes, int Held>
	__device__ void take(const Piece& p, uint32_t number) const {
		constexpr uint32_t Together = 4 * Held * Lanes;
		const uint32_t lane = threadIdx.x % Lanes, count = (uint32_t)p.count;
		float4 held[Held];
		uint32_t have = 1;  // what is held: none yet
		const auto hold = [&](uint32_t from) {
			if (have == from) return;
			have = from;
#pragma unroll
			for (int h = 0; h < Held; h++) held[h] = four(p, from + 4 * (lane + h * Lanes));
		};
		float peak = 0.0f;
		for (uint32_t from = 0; from < count; from += Together) {
			hold(from);
#pragma unroll
			for (int h = 0; h < Held; h++) peak = tile::peak_of(peak, held[h]);
		}
		if constexpr (Lanes == 32) {
			peak = warp_max(peak);
		} else {
			peak = block_max<Lanes>(peak);
		}
		const tile::Scale s = tile::scale_of(peak);
		if (lane == 0) inverses[number] = s.inverse;
		for (uint32_t from = 0; from < count; from += Together) {
			hold(from);
#pragma unroll
			for (int h = 0; h < Held; h++) {
				const uint32_t i = from + 4 * (lane + h * Lanes);
				if (i < count) narrow(p, number * a.PieceLength, i, held[h], s.factor);
			}
		}
	}

	// window returns where the window of a lane's row begins.
	__device__ const half* window(uint32_t m) const {
		const uint32_t row = lane_id() % 16, group = warp_id() / 2;
		const uint32_t out = a.Pool == 1 ? group * 48 + m * 16 + row : group * 16 + row;
		uint32_t piece = out / a.PieceRows, step = (out - piece * a.PieceRows) * a.Pool;
		if (a.Pool > 1) step += m;
		if (piece >= a.Pieces) piece = step = 0;  // nobody's row
		const uint32_t at = step * span, shift = at % 8;
		return left + shift / a.Grain * a.CopyPitch + piece * a.PieceLength + place(at - shift) + lane_id() / 16 * 8;
	}

	// columns loads the weights of 16 products.
	__device__ void columns(uint32_t (&b)[N][2], const half* from) const {
		const uint32_t lane = lane_id();
#pragma unroll
		for (int n = 0; n + 1 < N; n += 2) {
			uint32_t r[4];
			ldmatrix_x4(r, from + (n * 8 + lane / 16 * 8 + lane % 8) * a.WeightsPitch + lane / 8 % 2 * 8);
			b[n][0] = r[0];
			b[n][1] = r[1];
			b[n + 1][0] = r[2];
			b[n + 1][1] = r[3];
		}
		if constexpr (N % 2 == 1) ldmatrix_x2(b[N - 1], from + ((N - 1) * 8 + lane % 8) * a.WeightsPitch + lane / 8 % 2 * 8);
	}

	// rows loads 16 elements of windows. Those beyond a window's end, which belong to others,
	// become zero: they may be NaN.
	__device__ void rows(uint32_t (&r)[4], const half* from, uint32_t k) const {
		ldmatrix_x4(r, from);
		if (k + 16 <= a.Depth) return;
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t at = k + lane_id() % 4 * 2 + i / 2 * 8;
			r[i] &= at + 1 < a.Depth ? 0xffffffffu : at < a.Depth ? 0xffffu : 0;
		}
	}

	// multiply makes the sums.
	__device__ void multiply(Sums& total) const {
		const half* const weights = right + warp_id() % 2 * (Columns / 2) * a.WeightsPitch;
		const uint32_t low = 8 / a.Grain * a.CopyPitch;
		const half* windows[M];
#pragma unroll
		for (int m = 0; m < M; m++) windows[m] = window(m);
		uint32_t within = 0, at = 0;  // of S; of the windows in memory
		const auto next = [&] {
			at += 16;
			within += 16;
			if (a.Spaced && within == span) {
				within = 0;
				at += 8;
			}
		};
		if constexpr (Products == 1) {
			constexpr int Ahead = N > 5 ? 1 : 2;  // fragments in registers
#pragma unroll Ahead
			for (uint32_t k = 0; k < a.Padded; k += 16, next()) {
				uint32_t b[N][2];
				columns(b, weights + k);
#pragma unroll
				for (int m = 0; m < M; m++) {
					uint32_t r[4];
					rows(r, windows[m] + at, k);
#pragma unroll
					for (int n = 0; n < N; n++) mma_f16(total[m][n], r, b[n]);
				}
			}
		} else {
			for (uint32_t k = 0; k < a.Padded; k += 32) {
				Sums chain = {};
				uint32_t steps[2], b[N][2];
				steps[0] = at;
				next();
				steps[1] = at;
				next();
#pragma unroll
				for (uint32_t half = 0; half < 2; half++) {
					if (k + 16 * half >= a.Padded) continue;
					columns(b, weights + k + 16 * half);
#pragma unroll
					for (int m = 0; m < M; m++) {
						uint32_t r[4];
						rows(r, windows[m] + low + steps[half], k + 16 * half);
#pragma unroll
						for (int n = 0; n < N; n++) mma_f16(chain[m][n], r, b[n]);
					}
					columns(b, weights + Columns * a.WeightsPitch + k + 16 * half);
#pragma unroll
					for (int m = 0; m < M; m++) {
						uint32_t r[4];
						rows(r, windows[m] + steps[half], k + 16 * half);
#pragma unroll
						for (int n = 0; n < N; n++) mma_f16(chain[m][n], r, b[n]);
					}
				}
#pragma unroll
				for (uint32_t half = 0; half < 2; half++) {
					if (k + 16 * half >= a.Padded) continue;
					columns(b, weights + k + 16 * half);
#pragma unroll
					for (int m = 0; m < M; m++) {
						uint32_t r[4];
						rows(r, windows[m] + steps[half], k + 16 * half);
#pragma unroll
						for (int n = 0; n < N; n++) mma_f16(chain[m][n], r, b[n]);
					}
				}
#pragma unroll
				for (int m = 0; m < M; m++) {
#pragma unroll
					for (int n = 0; n < N; n++) {
#pragma unroll
						for (int i = 0; i < 4; i++) total[m][n][i] += chain[m][n][i];
					}
				}
			}
		}
	}

	// An Out is where the results of a row go.
	struct Out {
		float* y;  // nullptr: nowhere
		float inverse;
		bool live;
	};

	__device__ Out out_of(uint32_t tile, uint32_t row) const {
		const uint32_t number = row / a.PieceRows, unit = tile * a.Pieces + number;
		const uint32_t item = unit / a.Tiles, t = (a.FirstTile + unit % a.Tiles) * a.PieceRows + row % a.PieceRows;
		if (number >= a.Pieces || item >= a.Items || t < a.From || t >= a.To) return {nullptr, 1.0f, false};
		bool live = true;
		if (a.Lengths.P != nullptr) {
			const int64_t n = count_of(a.Lengths, item), room = n + a.PadLeft + a.PadRight - a.Kernel;
			live = n > 0 && room >= 0 && t < (room / a.Stride + 1) / a.Pool;
		}
		return {a.Y.P + (int64_t)item * a.Y.Batch + (int64_t)(t - a.From) * a.Y.Row, inverses[number], live};
	}

	// A Finish is an epilogue that is as good as nothing, in numbers, since each instruction
	// counts that is there for each sum: negative values are multiplied by slope, and bits kept.
	struct Finish {
		float slope;
		uint32_t bits;
	};

	__device__ Finish finish_of(bool heavy) const {
		Finish f{1.0f, 0xffffffffu};
		if (a.Epilogue.Kind == KindReLU) f.slope = 0.0f;
		if (a.Epilogue.Kind == KindLeaky) f.slope = a.Epilogue.Alpha;
		if (a.Abs && !heavy) f.bits = 0x7fffffffu;
		return f;
	}

	__device__ float finish(const Finish& f, float sum, float inverse, const float* scale) const {
		const float v = tile::unscale(sum, inverse, *scale) + scale[Columns];  // the bias
		return float_of(bits_of(v < 0.0f ? fmaf(f.slope, v, 0.0f) : v) & f.bits);  // not −0 of relu
	}

	// put stores up to two channels of an output.
	__device__ void put(const Out& o, float* to, int32_t left, float x, float y) const {
		if (!o.live) x = y = 0.0f;
		if (a.Pairs) {
			store2(to, {x, y});
			return;
		}
		to[0] = x;
		if (left > 1) to[1] = y;
	}

	// again applies an epilogue that would be much code for each sum to what the thread has
	// stored without it.
	__device__ void again(uint32_t tile) const {
		const uint32_t group = warp_id() / 2, row = lane_id() / 4, first = warp_id() % 2 * (Columns / 2) + lane_id() % 4 * 2;
#pragma unroll 1
		for (uint32_t r = 0; r < 2 * M; r++) {
			const Out o = out_of(tile, group * 48 + r * 8 + row);
			if (o.y == nullptr || !o.live) continue;
#pragma unroll 1
			for (uint32_t i = 0; i < 2 * N; i++) {
				const uint32_t column = band + first + i / 2 * 8 + i % 2;
				if (column >= a.Columns) continue;
				const float v = apply(a.Epilogue, o.y[column], 0.0f);
				o.y[column] = a.Abs ? fabsf(v) : v;
			}
		}
	}

	__device__ void store(const Sums& total, uint32_t tile) const {
		const bool heavy = !tile::light(a.Epilogue);
		const Finish f = finish_of(heavy);
		const uint32_t group = warp_id() / 2, row = lane_id() / 4, first = warp_id() % 2 * (Columns / 2) + lane_id() % 4 * 2;
		const int32_t left = (int32_t)(a.Columns - band - first);
		const float* const scale = scales + first;
		if (a.Pool == 1) {
#pragma unroll
			for (int r = 0; r < 2 * M; r++) {
				__syncwarp();  // scales of all channels for all rows are more than registers hold
				const Out o = out_of(tile, group * 48 + r * 8 + row);
				if (o.y == nullptr) continue;
				float* const y = o.y + band + first;
#pragma unroll
				for (int n = 0; n < N; n++) {
					const float* sums = &total[r / 2][n][r % 2 * 2];
					if (n * 8 >= left) continue;
					put(o, y + n * 8, left - n * 8, finish(f, sums[0], o.inverse, scale + n * 8), finish(f, sums[1], o.inverse, scale + n * 8 + 1));
				}
			}
			if (heavy) again(tile);
			return;
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			__syncwarp();
			const Out o = out_of(tile, group * 16 + r * 8 + row);
			if (o.y == nullptr) continue;
			float* const y = o.y + band + first;
#pragma unroll
			for (int n = 0; n < N; n++) {
				if (n * 8 >= left) continue;
				float best[2] = {-infinity(), -infinity()};
#pragma unroll
				for (int m = 0; m < M; m++) {
#pragma unroll
					for (int i = 0; i < 2; i++) best[i] = conv::larger(best[i], finish(f, total[m][n][2 * r + i], o.inverse, scale + n * 8 + i));
				}
				put(o, y + n * 8, left - n * 8, best[0], best[1]);
			}
		}
	}
};

// stretch numbers the blocks by groups of channels; those of the same channels share the
// tiles of all items.
template <int Columns, int Products>
__device__ void stretch(const ConvStretch& a) {
	const uint32_t bands = ceil_div(a.Columns, (uint32_t)Columns), tiles = ceil_div(a.Items * a.Tiles, a.Pieces);
	const uint32_t step = gridDim.x / bands;
	using Block = Stretch<Columns, Products>;
	const Block s(a, blockIdx.x % bands);
	s.weigh();
	wait_dependency();  // nobody writes weights
	for (uint32_t tile = blockIdx.x / bands; tile < tiles; tile += step) {
		if (a.Pieces == 1) {
			s.template take<Block::Threads, 3>(s.piece_of(tile, 0), 0);
		} else {
			for (uint32_t n = warp_id(); n < a.Pieces; n += Block::Threads / 32) s.template take<32, 5>(s.piece_of(tile, n), n);
		}
		copy_wait<0>();
		__syncthreads();
		typename Block::Sums total = {};
		s.multiply(total);
		s.store(total, tile);
		__syncthreads();  // the stretch, and scales, may still be read
	}
	release_dependents();
}

}  // namespace conv1d
