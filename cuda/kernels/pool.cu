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

	// meet counts the weights of all lanes of a warp.
	__device__ void meet() {
		for (int mask = 16; mask > 0; mask /= 2) count(Weights{shfl_xor(largest, mask), shfl_xor(others, mask), shfl_xor(squares, mask)});
	}
};

// frame_of returns the frame of a mask that weighs a column of the image.
__device__ inline uint32_t frame_of(const StatsPool& a, uint32_t column) {
	const uint64_t product = (uint64_t)column * a.Frames;
	return product <= 0xffffffffull ? (uint32_t)product / a.Width : (uint32_t)(product / a.Width);
}

// A Column is the share of a thread: a channel of a line of an item, and every eighth of
// the image's columns.
struct Column {
	uint32_t channel, number, line, item;
	const float* x;

	__device__ Column(const StatsPool& a, uint32_t block) {
		number = block % a.Blocks * 32 + threadIdx.x % 32;
		channel = min(number, a.Channels - 1);
		line = block / a.Blocks % a.Height;
		item = block / a.Blocks / a.Height;
		x = a.X.P + item * a.X.Batch + (int64_t)line * a.Width * a.X.Row + channel;
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

// A Sum is what a thread adds up of one mask: first weighed values, then distances from
// the mean. The first warp also counts the weights, for all.
struct Sum {
	Weights weights{};
	float values = 0.0f;
	float2 rest = {0.0f, 0.0f};
	float weight, rough;
	bool empty;

	// count and deviate take a stretch of 16 columns; those that are not there weigh nothing.
	__device__ void count(const float (&w)[Stretched], const float (&x)[Stretched]) {
		float sum = 0.0f;
#pragma unroll
		for (uint32_t i = 0; i < Stretched; i++) sum = fmaf(w[i], x[i], sum);
		values += sum;
	}
	__device__ void deviate(const float (&w)[Stretched], const float (&x)[Stretched]) {
		float2 part = {0.0f, 0.0f};
#pragma unroll
		for (uint32_t i = 0; i < Stretched; i++) {
			const float d = x[i] - rough, weighed = w[i] * d;
			part = {part.x + weighed, fmaf(weighed, d, part.y)};
		}
		rest = {rest.x + part.x, rest.y + part.y};
	}

	// meet puts together what the threads of a channel have counted.
	__device__ void meet() {
		__shared__ Weights share;
		if (threadIdx.x < 32) {
			weights.meet();
			if (threadIdx.x == 0) share = weights;
		}
		values = total<0>({values, 0.0f}).x;
		weights = share;
		empty = weights.largest + weights.others == 0.0f;
		weight = empty ? 1.0f : weights.largest + weights.others;
		rough = values / weight;
	}

	// put stores the mean and the deviation of a channel.
	__device__ void put(const StatsPool& a, const Column& c, uint32_t mask) {
		rest = total<1>(rest);
		const float fine = rest.x / weight;
		const float divisor = fmaf(2.0f * weights.largest, weights.others, fmaf(weights.others, weights.others, -weights.squares)) / weight;
		const float variance = empty || divisor <= 1e-12f * weight ? 0.0f : fmaf(-fine, rest.x, rest.y) / divisor;
		if (threadIdx.x >= 32 || c.number >= a.Channels) return;
		float* y = rows::at(a.Y, c.item, mask, (int64_t)c.number * a.Height + c.line);
		y[0] = empty ? 0.0f : rough + fine;
		y[(int64_t)a.Channels * a.Height] = sqrtf(variance < 1e-10f ? 1e-10f : variance);
	}
};

// within returns how many columns of a stretch of a thread there are.
__device__ inline uint32_t within(const StatsPool& a, uint32_t first) {
	return first < a.Width ? min((a.Width - first + Down - 1) / Down, Stretched) : 0;
}

__device__ inline void fetch(float (&x)[Stretched], const float* from, int64_t step, uint32_t n) {
#pragma unroll
	for (uint32_t i = 0; i < Stretched; i++) x[i] = i < n ? from[i * step] : 0.0f;
}

// A Mask hands the weights of 128 columns of the image at a time to the threads that have
// them. Frames take a division to find, which each thread makes for one column.
struct Mask {
	const float* weights;
	uint32_t turn;

	// fetch counts them too, in the first warp, unless that is done.
	__device__ void fetch(const StatsPool& a, float (&w)[Stretched], uint32_t base, Weights* counted) {
		__shared__ float staged[2][Down * Stretched];
		float* here = staged[turn++ % 2]; // the other may still be read
		const uint32_t column = base + threadIdx.x;
		if (threadIdx.x < Down * Stretched) here[threadIdx.x] = column < a.Width ? weights[frame_of(a, column)] : 0.0f;
		__syncthreads();
#pragma unroll
		for (uint32_t i = 0; i < Stretched; i++) w[i] = here[threadIdx.x / 32 + i * Down];
		if (counted == nullptr || threadIdx.x >= 32) return;
		Weights part{};
#pragma unroll
		for (uint32_t i = 0; i < Down * Stretched; i += 32) part.count(here[i + threadIdx.x]);
		counted->count(part);
	}
};

// 32 channels of a line of an item a block, for all masks one after the other, of an image
// so narrow that threads hold their columns.
__device__ void stats(const StatsPool& a) {
	release_dependents();
	const Column c(a, blockIdx.x);
	const uint32_t first = threadIdx.x / 32, n = within(a, first);
	float x[Stretched], w[Stretched];
	fetch(x, c.x + first * a.X.Row, Down * a.X.Row, n);
	Mask m = {rows::at(a.Mask, c.item, 0, 0), 0};
	for (uint32_t mask = 0; mask < a.Masks; mask++, m.weights += a.Mask.Row) {
		Sum s;
		m.fetch(a, w, 0, &s.weights);
		s.count(w, x);
		s.meet();
		s.deviate(w, x);
		s.put(a, c, mask);
	}
}

// The same for images of any width, which are read twice for each mask: a block takes one
// mask.
__device__ void stats_wide(const StatsPool& a) {
	release_dependents();
	const uint32_t mask = blockIdx.x % a.Masks;
	const Column c(a, blockIdx.x / a.Masks);
	float x[Stretched], w[Stretched];
	Mask m = {rows::at(a.Mask, c.item, mask, 0), 0};
	Sum s;
	const auto over = [&](Weights* counted, auto f) {
		for (uint32_t base = 0; base < a.Width; base += Down * Stretched) {
			const uint32_t first = base + threadIdx.x / 32, n = within(a, first);
			fetch(x, c.x + first * a.X.Row, Down * a.X.Row, n);
			m.fetch(a, w, base, counted);
			f();
		}
	};
	over(&s.weights, [&] { s.count(w, x); });
	s.meet();
	over(nullptr, [&] { s.deviate(w, x); });
	s.put(a, c, mask);
}

}  // namespace pool
