// Conv2D on tensor cores, from the image as it is.
//
// A block computes four lines of 32 pixels × Columns channels, and a warp one of the lines,
// or half of its channels. The more warps, the more of its latencies are hidden; then a block
// has the weights of all taps at once, which spares it barriers.
// The input is taken Depth channels at a time: the pixels of the tile and around it are
// copied to shared memory and become F16 there, which all taps read at different places. So
// the image is read once and no operand is prepared in memory.
//
// Values are scaled by a power of two that follows from the largest of the tile so far; when
// that grows, the sums are scaled down. Tiles begin at multiples of their size in the image,
// whatever part of it is wanted, so that a pixel always has the same scale, and the same
// bits. If operands are split, sums are made as in tile.cuh, in chains of Depth products.
#pragma once

#include "fragment.cuh"
#include "tile_prepare.cuh"
#include "tile_store.cuh"

namespace conv2d {

// Bits of the word Vectors.
constexpr uint32_t VectorX = 1, VectorY = 2;

template <int Size, int Stride, int Columns, int Products, int Warps>
struct Image {
	static constexpr int Lines = 4, Width = 32, Threads = 32 * Warps, Shares = Warps / Lines;
	static constexpr bool Whole = Shares > 1;  // weights of all taps are there at once
	// Pixels that a tile reads. Of kernels of one pixel those that stride leaves out are not
	// among them; else their even and odd columns lie apart, so that what the pixels of a line
	// need of a tap follows each other.
	static constexpr bool Apart = Size > 1 && Stride > 1;
	static constexpr int Step = Size > 1 ? 1 : Stride;  // pixels of the image from one to the next
	static constexpr int Down = (Lines - 1) * Stride / Step + Size, Across = (Width - 1) * Stride / Step + Size;
	static constexpr int Pixels = Down * Across, Even = (Across + 1) / 2;
	static constexpr int Depth = Apart ? 16 : 32, Quads = Depth / 4, Eights = Depth / 8, Taps = Size * Size;
	static constexpr int Parts = Products == 3 ? 2 : 1, Ring = Whole ? 2 * Taps : Products == 3 ? 4 : 3;
	static constexpr int Early = Whole && Columns == 32 ? 2 : 1;  // chunks of pixels on their way: small blocks have many
	// Groups of copies that may be on their way yet when pixels are needed, which came with the
	// first of their chunk's taps before.
	static constexpr int Since = Taps < Ring ? Taps - 1 : Ring - 2;
	static constexpr int SizeA = Pixels * Depth, SizeB = Columns * Depth;  // elements of a part
	static constexpr int M = 2, N = Columns / 8 / Shares;

	const ConvImage& a;
	float* raw;          // [Early][Pixels][Depth]
	half *left, *right;  // [Parts][SizeA], rows as tile::place says; [Ring][Parts][SizeB]
	int32_t line0, column0;
	uint32_t first;  // channel of the output
	const float* x;

	__device__ explicit Image(const ConvImage& args, uint32_t item, uint32_t line, uint32_t column, uint32_t band)
	    : a(args), raw(dynamic_shared<float>()), left(reinterpret_cast<half*>(raw + Early * SizeA)), right(left + Parts * SizeA),
	      line0((int32_t)(line * Lines)), column0((int32_t)(column * Width)), first(band * Columns),
	      x(args.X.P + (int64_t)item * args.X.Batch) {}

	// place returns where eight elements of a row of an operand are: exchanged with others so
	// that eight rows that follow each other lie in different banks.
	__device__ static uint32_t place(uint32_t row, uint32_t eight) {
		return row * Depth + (eight ^ (Depth == 32 ? row / 2 % 4 : row / 4 % 2)) * 8;
	}

	// row returns the row of the left operand of a pixel that the tile reads.
	__device__ static uint32_t row(uint32_t line, uint32_t column) {
		return line * Across + (Apart ? column % 2 * Even + column / 2 : column);
	}

	// A thread has a quad of channels of every Together-th pixel.
	static constexpr uint32_t Together = Threads / Quads;

	// fetch asks for the pixels of Depth channels, zeros around the image.
	__device__ void fetch(uint32_t chunk) const {
		float* const pixels = raw + chunk % Early * SizeA;
		uint32_t pixel = threadIdx.x / Quads, across = pixel;  // of the tile
		const uint32_t channel = chunk * Depth + threadIdx.x % Quads * 4, some = channel < a.In ? min(a.In - channel, 4u) : 0;
		uint32_t line = (uint32_t)(line0 * Stride - Size / 2), column = (uint32_t)(column0 * Stride - Size / 2) + across * Step;  // of the image
		int64_t at = ((int64_t)(int32_t)line * a.Width + (int32_t)column) * a.X.Row + channel;
		const int64_t along = (int64_t)Together * Step * a.X.Row, down = ((int64_t)a.Width - Across) * Step * a.X.Row;
		for (; pixel < Pixels; pixel += Together) {
			const uint32_t count = line < a.Height && column < a.Width ? some : 0;
			const float* from = count > 0 ? x + at : a.X.P;
			float* to = pixels + pixel * Depth + threadIdx.x % Quads * 4;
			if (a.Vectors & VectorX) {
				copy_async<16>(to, from, 4 * count);
			} else {
#pragma unroll
				for (uint32_t j = 0; j < 4; j++) copy_async<4>(to + j, j < count ? from + j : a.X.P, j < count ? 4 : 0);
			}
			at += along;
			across += Together;
			column += Together * Step;
			if (across >= Across) {
				at += down;
				across -= Across;
				column -= Across * Step;
				line += Step;
			}
		}
	}

	// weigh asks for the weights of a tap of Depth channels.
	__device__ void weigh(uint32_t step) const {
		if (step >= ceil_div(a.In, (uint32_t)Depth) * Taps) return;
		const uint32_t chunk = step / Taps, tap = step % Taps;
		const uint32_t eight = threadIdx.x % Eights, channel = chunk * Depth + eight * 8;
		half* to = right + step % Ring * (Parts * SizeB);
#pragma unroll
		for (uint32_t row = threadIdx.x / Eights; row < Columns; row += Threads / Eights) {
			const bool there = first + row < a.Columns && channel < a.Padded;
			const int64_t from = there ? (int64_t)(first + row) * a.WeightsRow + tap * a.Padded + channel : 0;
			copy_async<16>(to + place(row, eight), a.High + from, there ? 16 : 0);
			if (Products == 3) copy_async<16>(to + SizeB + place(row, eight), a.Low + from, there ? 16 : 0);
		}
	}

	// peak returns the largest magnitude of the pixels that is finite.
	__device__ float peak(const float* raw) const {
		float all = 0.0f;
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) {
			const float4 v = load4(raw + 4 * i);
			all = fmaxf(fmaxf(fmaxf(all, fabsf(v.x)), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
		}
		all = block_max<Threads>(all);
		if (all < infinity()) return all;
		float some = 0.0f;
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) some = tile::peak_of(some, load4(raw + 4 * i));
		return block_max<Threads>(some);
	}

	// narrow makes F16 of the pixels.
	__device__ void narrow(const float* raw, float factor) const {
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) {
			const uint32_t pixel = i / Quads, quad = i % Quads;
			const uint32_t to = place(Apart ? row(pixel / Across, pixel % Across) : pixel, quad / 2) + quad % 2 * 4;
			tile::put(left, Products == 3 ? left + SizeA : nullptr, to, load4(raw + 4 * i), factor);
		}
	}

	using Sums = float[M][N][4];

	// products adds 16 products of each sum, of rows of a from the given one on.
	__device__ static void products(Sums& sum, const half* a, uint32_t from, const half* b, uint32_t depth) {
		const uint32_t lane = lane_id();
		uint32_t right[N][2];
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			uint32_t r[4];
			ldmatrix_x4(r, b + place(n * 8 + lane / 16 * 8 + lane % 8, depth / 8 + lane / 8 % 2));
			right[n][0] = r[0];
			right[n][1] = r[1];
			right[n + 1][0] = r[2];
			right[n + 1][1] = r[3];
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
			uint32_t left[4];
			ldmatrix_x4(left, a + place(from + m * 16 + lane % 16, depth / 8 + lane / 16));
#pragma unroll
			for (int n = 0; n < N; n++) mma_f16(sum[m][n], left, right[n]);
		}
	}

	// add adds the products of a tap.
	__device__ void add(Sums& total, uint32_t step) const {
		const uint32_t tap = step % Taps, from = row(warp_id() % Lines * (Stride / Step) + tap / Size, tap % Size);
		const half* b = right + step % Ring * (Parts * SizeB) + warp_id() / Lines * (N * 8 * Depth);
		if (Products == 1) {
#pragma unroll
			for (int k = 0; k < Depth; k += 16) products(total, left, from, b, k);
			return;
		}
		Sums chain = {};
#pragma unroll
		for (int k = 0; k < Depth; k += 16) {
			products(chain, left + SizeA, from, b, k);
			products(chain, left, from, b + SizeB, k);
		}
#pragma unroll
		for (int k = 0; k < Depth; k += 16) products(chain, left, from, b, k);
#pragma unroll
		for (int m = 0; m < M; m++) {
#pragma unroll
			for (int n = 0; n < N; n++) {
#pragma unroll
				for (int i = 0; i < 4; i++) total[m][n][i] += chain[m][n][i];
			}
		}
	}

	// run makes the sums and returns what they are to be multiplied by.
	__device__ float run(Sums& total) const {
		const uint32_t chunks = ceil_div(a.In, (uint32_t)Depth);
		tile::Scale scale{};
		constexpr int Ahead = Whole ? Taps : Ring - 1;
		for (uint32_t i = 0; i < Ahead; i++) {
			weigh(i);
			if (!Whole) copy_commit();
		}
		wait_dependency();  // nobody writes weights
		for (uint32_t i = 0; i < Early; i++) {
			if (i == 0 || i < chunks) fetch(i);
			copy_commit();
		}
		for (uint32_t chunk = 0; chunk < chunks; chunk++) {
			if (Early > 1) {
				copy_wait<1>();
			} else if (Whole || chunk == 0) {
				copy_wait<0>();
			} else {
				copy_wait<Since>();
			}
			__syncthreads();
			const float* const pixels = raw + chunk % Early * SizeA;
			const tile::Scale s = tile::scale_of(peak(pixels));
			if (chunk == 0 || s.factor < scale.factor) {
				const float ratio = chunk == 0 ? 1.0f : s.factor * scale.inverse;
				scale = s;
#pragma unroll
				for (int m = 0; m < M; m++) {
#pragma unroll
					for (int n = 0; n < N; n++) {
#pragma unroll
						for (int i = 0; i < 4; i++) total[m][n][i] *= ratio;
					}
				}
			}
			narrow(pixels, scale.factor);
			if (Early > 1) copy_wait<0>();  // weights, which were asked for later
			__syncthreads();
			if (chunk + Early < chunks) fetch(chunk + Early);
			if (Whole) {
				for (uint32_t tap = 0; tap < Taps; tap++) weigh((chunk + 1) * Taps + tap);
				copy_commit();
#pragma unroll
				for (uint32_t tap = 0; tap < Taps; tap++) add(total, chunk * Taps + tap);
				continue;
			}
			for (uint32_t tap = 0; tap < Taps; tap++) {
				const uint32_t step = chunk * Taps + tap;
				copy_wait<Ring - 2>();
				__syncthreads();
				weigh(step + Ring - 1);
				copy_commit();
				add(total, step);
			}
		}
		return scale.inverse;
	}

	// store finishes the sums: scales, bias, residual, relu. All that is loaded is loaded before
	// the first store, which it would wait behind, since it might be what is stored.
	__device__ void store(Sums& total, float inverse, uint32_t item) const {
		const uint32_t line = line0 + warp_id() % Lines, column = column0 + lane_id() / 4;
		const uint32_t channel = first + warp_id() / Lines * (N * 8) + lane_id() % 4 * 2;
		if (line < a.From || line >= a.To) return;
		const int64_t pixel = (int64_t)(line - a.From) * a.OutWidth + column;
		float* const y = a.Y.P + (int64_t)item * a.Y.Batch + pixel * a.Y.Row + channel;
		const float* const before = a.Residual.P + (int64_t)item * a.Residual.Batch + pixel * a.Residual.Row + channel;
		const bool pairs = a.Vectors & VectorY;
		const int32_t left = (int32_t)(a.Columns - channel);
#pragma unroll
		for (int n = 0; n < N; n++) {
#pragma unroll
			for (int i = 0; i < 2; i++) {
				const bool there = n * 8 + i < left;
				const float scale = a.Scales != nullptr && there ? a.Scales[channel + n * 8 + i] : 1.0f;
				const float bias = a.Bias != nullptr && there ? a.Bias[channel + n * 8 + i] : 0.0f;
#pragma unroll
				for (int r = 0; r < 2 * M; r++) {
					float& v = total[r / 2][n][r % 2 * 2 + i];
					v = tile::unscale(v, inverse, scale) + bias;
				}
			}
		}
		const auto relu = [&](float v) { return a.ReLU && v < 0.0f ? 0.0f : v; };
		if (pairs && (N - 1) * 8 + 1 < left) {
			// Without branches, so that loads wait together: what is not a pixel is read elsewhere.
			const uint32_t pixels = a.OutWidth > column ? a.OutWidth - column : 0;
			if (a.Residual.P != nullptr) {
#pragma unroll
				for (int r = 0; r < 2 * M; r++) {
					const float* from = r * 8 < pixels ? before + r * 8 * a.Residual.Row : a.Residual.P + lane_id() % 4 * 2;
#pragma unroll
					for (int n = 0; n < N; n++) {
						const float2 u = load2(from + n * 8);
						total[r / 2][n][r % 2 * 2] += u.x;
						total[r / 2][n][r % 2 * 2 + 1] += u.y;
					}
				}
			}
#pragma unroll
			for (int r = 0; r < 2 * M; r++) {
				if (r * 8 >= pixels) continue;
#pragma unroll
				for (int n = 0; n < N; n++) {
					const float* v = &total[r / 2][n][r % 2 * 2];
					store2(y + r * 8 * a.Y.Row + n * 8, {relu(v[0]), relu(v[1])});
				}
			}
			return;
		}
#pragma unroll
		for (int n = 0; n < N; n++) {
#pragma unroll
			for (int r = 0; r < 2 * M; r++) {
				float* to = y + r * 8 * a.Y.Row + n * 8;
				const float* from = before + r * 8 * a.Residual.Row + n * 8;
				if (column + r * 8 >= a.OutWidth) continue;
#pragma unroll
				for (int i = 0; i < 2; i++) {
					if (n * 8 + i < left) to[i] = relu(total[r / 2][n][r % 2 * 2 + i] + (a.Residual.P != nullptr ? from[i] : 0.0f));
				}
			}
		}
	}
};

// image numbers the blocks by groups of channels, then tiles along a line, then lines of
// tiles, then items.
template <int Size, int Stride, int Columns, int Products, int Warps>
__device__ void image(const ConvImage& a) {
	const uint32_t bands = ceil_div(a.Columns, (uint32_t)Columns), across = ceil_div(a.OutWidth, 32u);
	const uint32_t tile = blockIdx.x / bands, line = tile / across;
	const uint32_t item = line / a.Down;
	using Block = Image<Size, Stride, Columns, Products, Warps>;
	const Block block(a, item, a.From / Block::Lines + line % a.Down, tile % across, blockIdx.x % bands);
	typename Block::Sums total = {};
	const float inverse = block.run(total);
	release_dependents();
	block.store(total, inverse, item);
}

}  // namespace conv2d
