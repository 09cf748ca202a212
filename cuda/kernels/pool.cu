// StatsPool.
#include "rows.cuh"

namespace pool {

constexpr uint32_t Down = 8;      // threads of a channel
constexpr uint32_t Stretched = 16; // columns of a thread that make a stretch: widths may be long

// Weights are sums of weights. The largest is kept apart from the sum of the others and of
// their squares: Σw − (Σw²)/Σw is a small difference of large numbers where one weight
// outdoes all others, but 2·largest·others + (others² − squares), over Σw, is not.
struct Weights {
	float largest, others, squares;

	__device__ void count(float w) {
		const float less = min_or_nan(largest, w);
		largest = max_or_nan(largest, w);
		others += less;
		squares = fmaf(less, less, squares);
	}

	__device__ void count(const Weights& w) {
		count(w.largest);
		others += w.others;
		squares += w.squares;
	}
};

// frame_of returns the frame of a mask that weighs a column of the image.
__device__ inline uint32_t frame_of(const StatsPool& a, uint32_t column) {
	const uint64_t product = (uint64_t)column * a.Frames;
	return product <= 0xffffffffull ? (uint32_t)product / a.Width : (uint32_t)(product / a.Width);
}

// A Column is the share of a thread: a channel of a line of an item, for one mask, and of
// the image's columns every eighth.
struct Column {
	uint32_t channel, number, line, mask, item;
	const float *x, *weights;

	__device__ explicit Column(const StatsPool& a) {
		number = blockIdx.x % a.Blocks * 32 + threadIdx.x % 32;
		channel = min(number, a.Channels - 1);
		line = blockIdx.x / a.Blocks % a.Height;
		mask = blockIdx.x / a.Blocks / a.Height % a.Masks;
		item = blockIdx.x / a.Blocks / a.Height / a.Masks;
		x = a.X.P + item * a.X.Batch + (int64_t)line * a.Width * a.X.Row + channel;
		weights = rows::at(a.Mask, item, mask, 0);
	}

	// over calls f with the weight and the value of each column of the image, in stretches,
	// and then g at the end of each.
	template <class F, class G>
	__device__ void over(const StatsPool& a, F f, G g) const {
		for (uint32_t first = threadIdx.x / 32; first < a.Width; first += Down * Stretched) {
#pragma unroll 8
			for (uint32_t i = first; i < min(first + Down * Stretched, a.Width); i += Down) f(weights[frame_of(a, i)], x[i * a.X.Row]);
			g();
		}
	}
};

// total adds v up over the threads of a channel.
template <int Slot>
__device__ float2 total(float2 v) {
	__shared__ float2 shares[Down][32];
	const uint32_t lane = threadIdx.x % 32;
	shares[threadIdx.x / 32][lane] = v;
	__syncthreads();
	v = shares[0][lane];
	for (uint32_t i = 1; i < Down; i++) {
		v.x += shares[i][lane].x;
		v.y += shares[i][lane].y;
	}
	return v;
}

// 32 channels of a line of an item a block, for one mask.
__device__ void stats(const StatsPool& a) {
	release_dependents();
	__shared__ Weights weight_shares[Down];
	const Column c(a);
	Weights all{}, part{};
	float sum = 0.0f, sum_part = 0.0f;
	c.over(a, [&](float w, float x) {
		part.count(w);
		sum_part = fmaf(w, x, sum_part);
	}, [&] {
		all.count(part);
		sum += sum_part;
		part = Weights{};
		sum_part = 0.0f;
	});
	if (threadIdx.x % 32 == 0) weight_shares[threadIdx.x / 32] = all;
	sum = total<0>({sum, 0.0f}).x;
	all = weight_shares[0];
	for (uint32_t i = 1; i < Down; i++) all.count(weight_shares[i]);
	const bool empty = all.largest + all.others == 0.0f;
	const float weight = empty ? 1.0f : all.largest + all.others;
	const float rough = sum / weight;
	float2 rest = {0.0f, 0.0f}, rest_part = {0.0f, 0.0f};
	c.over(a, [&](float w, float x) {
		const float d = x - rough;
		rest_part = {fmaf(w, d, rest_part.x), fmaf(w * d, d, rest_part.y)};
	}, [&] {
		rest = {rest.x + rest_part.x, rest.y + rest_part.y};
		rest_part = {0.0f, 0.0f};
	});
	rest = total<1>(rest);
	const float fine = rest.x / weight;
	const float divisor = fmaf(2.0f * all.largest, all.others, fmaf(all.others, all.others, -all.squares)) / weight;
	const float variance = empty || divisor <= 1e-12f * weight ? 0.0f : fmaf(-fine, rest.x, rest.y) / divisor;
	if (threadIdx.x >= 32 || c.number >= a.Channels) return;
	float* y = rows::at(a.Y, c.item, c.mask, (int64_t)c.number * a.Height + c.line);
	y[0] = empty ? 0.0f : rough + fine;
	y[(int64_t)a.Channels * a.Height] = sqrtf(variance < 1e-10f ? 1e-10f : variance);
}

}  // namespace pool
