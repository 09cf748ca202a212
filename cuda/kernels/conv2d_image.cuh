// Conv2D of 3×3 with stride 1 on tensor cores, from the image as it is.
//
// A block computes four lines of 32 pixels × Columns channels, and a warp one of the lines.
// The input is taken 32 channels at a time: the pixels of the tile and around it are copied
// to shared memory and become F16 there, which all nine taps read at different places. So
// the image is read once and no operand is prepared in memory.
//
// Values are scaled by a power of two that follows from the largest of the tile so far; when
// that grows, the sums are scaled down. Tiles begin at multiples of their size in the image,
// whatever part of it is wanted, so that a pixel always has the same scale, and the same
// bits. Sums are made as in tile.cuh, in chains of 32 products if operands are split.
#pragma once

#include "tile.cuh"
#include "tile_prepare.cuh"

namespace conv2d {

// Bits of the word Vectors.
constexpr uint32_t VectorX = 1, VectorY = 2;

template <int Columns, int Products>
struct Image {
	static constexpr int Lines = 4, Width = 32, Threads = 128;
	static constexpr int Across = Width + 2, Pixels = (Lines + 2) * Across;
	static constexpr int Depth = tile::Depth, Quads = Depth / 4, Taps = 9;
	static constexpr int Parts = Products == 3 ? 2 : 1, Ring = Products == 3 ? 4 : 3;
	static constexpr int SizeA = Pixels * Depth, SizeB = Columns * Depth;  // elements of a part
	static constexpr int M = 2, N = Columns / 8;

	const ConvImage& a;
	float* raw;          // [Pixels][Depth]
	half *left, *right;  // [Parts][SizeA], rows as tile::place says; [Ring][Parts][SizeB]
	int32_t line0, column0;
	uint32_t first;  // channel of the output
	const float* x;

	__device__ explicit Image(const ConvImage& args, uint32_t item, uint32_t line, uint32_t column, uint32_t band)
	    : a(args), raw(dynamic_shared<float>()), left(reinterpret_cast<half*>(raw + SizeA)), right(left + Parts * SizeA),
	      line0((int32_t)(line * Lines)), column0((int32_t)(column * Width)), first(band * Columns),
	      x(args.X.P + (int64_t)item * args.X.Batch) {}

	// fetch asks for the pixels of 32 channels, zeros around the image.
	__device__ void fetch(uint32_t chunk) const {
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) {
			const uint32_t pixel = i / Quads, channel = chunk * Depth + i % Quads * 4;
			const uint32_t line = (uint32_t)(line0 - 1) + pixel / Across, column = (uint32_t)(column0 - 1) + pixel % Across;
			const uint32_t count = line < a.Height && column < a.Width && channel < a.In ? min(a.In - channel, 4u) : 0;
			const float* from = count > 0 ? x + ((int64_t)line * a.Width + column) * a.X.Row + channel : a.X.P;
			if (a.Vectors & VectorX) {
				copy_async<16>(raw + 4 * i, from, 4 * count);
				continue;
			}
#pragma unroll
			for (uint32_t j = 0; j < 4; j++) copy_async<4>(raw + 4 * i + j, j < count ? from + j : a.X.P, j < count ? 4 : 0);
		}
	}

	// weigh asks for the weights of a tap of 32 channels.
	__device__ void weigh(uint32_t step) const {
		const uint32_t chunk = step / Taps, tap = step % Taps;
		half* to = right + step % Ring * (Parts * SizeB);
		for (uint32_t i = threadIdx.x; i < Columns * tile::Chunks; i += Threads) {
			const uint32_t row = i / tile::Chunks, eight = i % tile::Chunks, channel = chunk * Depth + eight * tile::Chunk;
			const bool there = first + row < a.Columns && channel < a.Padded;
			const int64_t from = there ? (int64_t)(first + row) * a.WeightsRow + tap * a.Padded + channel : 0;
			copy_async<16>(to + tile::place(row, eight), a.High + from, there ? 16 : 0);
			if (Products == 3) copy_async<16>(to + SizeB + tile::place(row, eight), a.Low + from, there ? 16 : 0);
		}
	}

	// peak returns the largest magnitude of the pixels.
	__device__ float peak() const {
		float v = 0.0f;
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) v = tile::peak_of(v, load4(raw + 4 * i));
		return block_max<Threads>(v);
	}

	// narrow makes F16 of the pixels.
	__device__ void narrow(float factor) const {
		for (uint32_t i = threadIdx.x; i < Pixels * Quads; i += Threads) {
			const uint32_t pixel = i / Quads, quad = i % Quads;
			tile::put(left, Products == 3 ? left + SizeA : nullptr, tile::place(pixel, quad / 2) + quad % 2 * 4, load4(raw + 4 * i), factor);
		}
	}

	using Sums = float[M][N][4];

	// add adds the products of a tap.
	__device__ void add(Sums& total, uint32_t step) const {
		const uint32_t tap = step % Taps;
		const tile::Warp<Width, Columns> warp{(warp_id() + tap / 3) * Across + tap % 3, 0};
		const half* b = right + step % Ring * (Parts * SizeB);
		if (Products == 1) {
#pragma unroll
			for (int k = 0; k < Depth; k += 16) warp.products(total, left, b, k);
			return;
		}
		Sums chain = {};
#pragma unroll
		for (int k = 0; k < Depth; k += 16) {
			warp.products(chain, left + SizeA, b, k);
			warp.products(chain, left, b + SizeB, k);
		}
#pragma unroll
		for (int k = 0; k < Depth; k += 16) warp.products(chain, left, b, k);
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
		const uint32_t chunks = ceil_div(a.In, (uint32_t)Depth), steps = chunks * Taps;
		tile::Scale scale{};
		fetch(0);
		for (uint32_t i = 0; i < Ring - 1; i++) {
			if (i < steps) weigh(i);
			copy_commit();
		}
		for (uint32_t chunk = 0; chunk < chunks; chunk++) {
			copy_wait<Ring - 2>();
			__syncthreads();
			const tile::Scale s = tile::scale_of(peak());
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
			narrow(scale.factor);
			__syncthreads();
			if (chunk + 1 < chunks) fetch(chunk + 1);
			for (uint32_t tap = 0; tap < Taps; tap++) {
				const uint32_t step = chunk * Taps + tap;
				copy_wait<Ring - 2>();
				__syncthreads();
				if (step + Ring - 1 < steps) weigh(step + Ring - 1);
				copy_commit();
				add(total, step);
			}
		}
		return scale.inverse;
	}

	// store finishes the sums: residual, bias, relu.
	__device__ void store(const Sums& total, float inverse, uint32_t item) const {
		const uint32_t line = line0 + warp_id();
		if (line < a.From || line >= a.To) return;
#pragma unroll
		for (int r = 0; r < 2 * M; r++) {
			const uint32_t column = column0 + r / 2 * 16 + r % 2 * 8 + lane_id() / 4;
			if (column >= a.Width) continue;
			const int64_t row = (int64_t)(line - a.From) * a.Width + column;
			float* y = a.Y.P + (int64_t)item * a.Y.Batch + row * a.Y.Row;
			const float* residual = a.Residual.P == nullptr ? nullptr : a.Residual.P + (int64_t)item * a.Residual.Batch + row * a.Residual.Row;
#pragma unroll
			for (int n = 0; n < N; n++) {
				const uint32_t channel = first + n * 8 + lane_id() % 4 * 2;
				float v[2] = {total[r / 2][n][r % 2 * 2], total[r / 2][n][r % 2 * 2 + 1]};
#pragma unroll
				for (uint32_t i = 0; i < 2; i++) {
					if (channel + i >= a.Columns) continue;
					v[i] = tile::unscale(v[i], inverse, a.Scales == nullptr ? 1.0f : a.Scales[channel + i]);
					if (residual != nullptr) v[i] += residual[channel + i];
					if (a.Bias != nullptr) v[i] += a.Bias[channel + i];
					if (a.ReLU && v[i] < 0.0f) v[i] = 0.0f;
				}
				if ((a.Vectors & VectorY) && channel + 1 < a.Columns) {
					store2(y + channel, {v[0], v[1]});
					continue;
				}
#pragma unroll
				for (uint32_t i = 0; i < 2; i++) {
					if (channel + i < a.Columns) y[channel + i] = v[i];
				}
			}
		}
	}
};

// image numbers the blocks by groups of channels, then tiles along a line, then lines of
// tiles, then items.
template <int Columns, int Products>
__device__ void image(const ConvImage& a) {
	const uint32_t bands = ceil_div(a.Columns, (uint32_t)Columns), across = ceil_div(a.Width, 32u);
	const uint32_t tile = blockIdx.x / bands, line = tile / across;
	const uint32_t item = line / a.Down;
	const Image<Columns, Products> block(a, item, a.From / 4 + line % a.Down, tile % across, blockIdx.x % bands);
	typename Image<Columns, Products>::Sums total = {};
	const float inverse = block.run(total);
	release_dependents();
	block.store(total, inverse, item);
}

}  // namespace conv2d
