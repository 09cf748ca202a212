// DepthwiseConv2D: each channel of an image convolved by its own 3×3 kernel with stride 2,
// after a convolution from one channel if wanted.
#pragma once
#include "rows.cuh"

namespace conformer {

// How many output columns a thread takes at most. What two of them have in common of the
// image is read or made once.
constexpr uint32_t Walk = 8;

__device__ inline uint32_t halved(uint32_t n) { return (n + 1) / 2; }

// An Errand is what a thread does: columns [from, to) of an output row, channels from
// channel on.
struct Errand {
	uint32_t item, row, from, to, channel, length;
	bool live; // else the outputs are zero
};

// errand returns what thread number unit of all does: groups of Channels channels follow
// each other, then walks along the row, then rows.
template <uint32_t Channels, bool First>
__device__ Errand errand(const Depthwise& a, int64_t unit) {
	Errand e;
	e.channel = (uint32_t)(unit % a.Groups) * Channels;
	const int64_t walk = unit / a.Groups, row = walk / a.Walks;
	e.from = (uint32_t)(walk % a.Walks) * Walk;
	e.to = min(e.from + Walk, a.Width);
	e.row = (uint32_t)(row % a.Rows);
	e.item = (uint32_t)(row / a.Rows);
	e.length = rows::number_of(a.Lengths, e.item, 0);
	e.live = a.From + e.row < halved(First ? halved(e.length) : e.length);
	return e;
}

// depthwise takes four channels a thread.
__device__ inline void depthwise(const Depthwise& a) {
	const int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (unit >= a.Units) return;
	const Errand e = errand<4, false>(a, unit);
	const uint32_t left = a.Channels - e.channel;
	float* y = rows::at(a.Y, e.item, e.row, e.channel);
	if (!e.live) {
		for (uint32_t f = e.from; f < e.to; f++) rows::store(y + (int64_t)f * a.Channels, left, a.Vectors, float4{0.0f, 0.0f, 0.0f, 0.0f});
		return;
	}
	float4 w[9], bias;
#pragma unroll
	for (int i = 0; i < 9; i++) w[i] = load4(a.Weights + (int64_t)i * a.WeightsRow + e.channel);
	bias = load4(a.Weights + 9 * (int64_t)a.WeightsRow + e.channel);
	const int64_t line = 2 * ((int64_t)a.From + e.row) - 1;
	const float* x = a.X.P + (int64_t)e.item * a.X.Batch + (line - a.Held) * a.X.Row + e.channel;
	// pixel returns what the image has in line + i and a column.
	const auto pixel = [&](int i, int64_t column) -> float4 {
		if (line + i < 0 || line + i >= e.length || column < 0 || column >= a.Frequency) return {0.0f, 0.0f, 0.0f, 0.0f};
		return rows::load(x + i * a.X.Row + column * a.Channels, left, a.Vectors);
	};
	float4 image[3][3];
#pragma unroll
	for (int i = 0; i < 3; i++) image[i][2] = pixel(i, 2 * (int64_t)e.from - 1);
	for (uint32_t f = e.from; f < e.to; f++) {
#pragma unroll
		for (int i = 0; i < 3; i++) {
			image[i][0] = image[i][2];
			image[i][1] = pixel(i, 2 * (int64_t)f);
			image[i][2] = pixel(i, 2 * (int64_t)f + 1);
		}
		float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
		for (int i = 0; i < 9; i++) {
			const float4 p = image[i / 3][i % 3];
			v = {fmaf(p.x, w[i].x, v.x), fmaf(p.y, w[i].y, v.y), fmaf(p.z, w[i].z, v.z), fmaf(p.w, w[i].w, v.w)};
		}
		v = {v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w};
		rows::store(y + (int64_t)f * a.Channels, left, a.Vectors, v);
	}
}

// after_first does an errand of two channels. Of the image between it makes three rows of two
// columns for each output, from seven rows and five columns of X, which are the same for all
// channels; quad(i, f) returns columns 4·f to 4·f + 3 of row i of the seven.
template <class Quad>
__device__ void after_first(const Depthwise& a, const Errand& e, Quad quad) {
	const bool second = e.channel + 1 < a.Channels;
	float* y = rows::at(a.Y, e.item, e.row, e.channel);
	const auto store = [&](uint32_t f, float2 v) {
		float* p = y + (int64_t)f * a.Channels;
		if (a.Vectors) {
			store2(p, v);
			return;
		}
		p[0] = v.x;
		if (second) p[1] = v.y;
	};
	if (!e.live) {
		for (uint32_t f = e.from; f < e.to; f++) store(f, {0.0f, 0.0f});
		return;
	}
	float2 w[20];  // nine taps and the bias, and those before
#pragma unroll
	for (int i = 0; i < 20; i++) w[i] = load2(a.Weights + (int64_t)i * a.WeightsRow + e.channel);

	const int64_t between = 2 * ((int64_t)a.From + e.row) - 1;
	const uint32_t height = halved(e.length), width = halved(a.Frequency);
	float samples[7][5];
	float2 image[3][3];
	// make fills a column of the image between of samples from the given column on.
	const auto make = [&](int to, int64_t column, int from) {
#pragma unroll
		for (int i = 0; i < 3; i++) {
			float2 v = {0.0f, 0.0f};
#pragma unroll
			for (int j = 0; j < 9; j++) {
				const float s = samples[2 * i + j / 3][from + j % 3];
				v = {fmaf(s, w[10 + j].x, v.x), fmaf(s, w[10 + j].y, v.y)};
			}
			v = {v.x + w[19].x, v.y + w[19].y};
			v = {v.x < 0.0f ? 0.0f : v.x, v.y < 0.0f ? 0.0f : v.y};
			const bool inside = between + i >= 0 && between + i < height && column >= 0 && column < width;
			image[i][to] = inside ? v : float2{0.0f, 0.0f};
		}
	};
	const auto fetch = [&](int32_t f) {
#pragma unroll
		for (int i = 0; i < 7; i++) {
			const float4 q = quad(i, f);
			samples[i][0] = samples[i][4];
			samples[i][1] = q.x;
			samples[i][2] = q.y;
			samples[i][3] = q.z;
			samples[i][4] = q.w;
		}
	};
#pragma unroll
	for (int i = 0; i < 7; i++) samples[i][4] = 0.0f;  // of no column that is used
	fetch((int32_t)e.from - 1);
	make(2, 2 * (int64_t)e.from - 1, 2);
	for (uint32_t f = e.from; f < e.to; f++) {
		fetch((int32_t)f);
#pragma unroll
		for (int i = 0; i < 3; i++) image[i][0] = image[i][2];
		make(1, 2 * (int64_t)f, 0);
		make(2, 2 * (int64_t)f + 1, 2);
		float2 v = {0.0f, 0.0f};
#pragma unroll
		for (int i = 0; i < 9; i++) {
			const float2 p = image[i / 3][i % 3];
			v = {fmaf(p.x, w[i].x, v.x), fmaf(p.y, w[i].y, v.y)};
		}
		store(f, {v.x + w[9].x, v.y + w[9].y});
	}
}

// A Strip is the seven rows of X that a row of the output comes from.
struct Strip {
	const float* x;
	int64_t line, row, length, frequency;

	__device__ Strip(const Depthwise& a, const Errand& e)
	    : line(4 * ((int64_t)a.From + e.row) - 3), row(a.X.Row), length(e.length), frequency(a.Frequency) {
		x = a.X.P + (int64_t)e.item * a.X.Batch + (line - a.Held) * row;
	}
	__device__ float at(int i, int64_t column) const {
		if (line + i < 0 || line + i >= length || column < 0 || column >= frequency) return 0.0f;
		return x[i * row + column];
	}
};

// depthwise_first reads X where it needs it, for images that are very wide.
__device__ inline void depthwise_first(const Depthwise& a) {
	const int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (unit >= a.Units) return;
	const Errand e = errand<2, true>(a, unit);
	const Strip strip(a, e);
	after_first(a, e, [&](int i, int32_t f) {
		const int64_t column = 4 * (int64_t)f;
		return float4{strip.at(i, column), strip.at(i, column + 1), strip.at(i, column + 2), strip.at(i, column + 3)};
	});
}

// depthwise_strip copies the seven rows to shared memory first, with zeros around them. A
// block has errands of one output row, as many blocks as that has a row.
__device__ inline void depthwise_strip(const Depthwise& a) {
	const uint32_t each = a.Groups * a.Walks, blocks = ceil_div(each, blockDim.x);
	const int64_t row = blockIdx.x / blocks;
	const uint32_t number = blockIdx.x % blocks * blockDim.x + threadIdx.x;
	const Errand e = errand<2, true>(a, row * each + min(number, each - 1));
	float* strip = dynamic_shared<float>();  // [7][pitch], from column −4 on
	const uint32_t pitch = 4 * a.Width + 8;
	if (e.live) {
		const Strip from(a, e);
		for (uint32_t i = threadIdx.x; i < 7 * pitch; i += blockDim.x) strip[i] = from.at((int)(i / pitch), (int64_t)(i % pitch) - 4);
	}
	__syncthreads();
	if (number >= each) return;
	after_first(a, e, [&](int i, int32_t f) { return load4(strip + i * pitch + 4 * f + 4); });
}

}  // namespace conformer
