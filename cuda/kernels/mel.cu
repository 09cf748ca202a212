// LogMel.
#include "mel_fft.cuh"
#include "mel_normal.cuh"

namespace mel {

// A Clip is an item's samples, with padding and pre-emphasis over the clip.
struct Clip {
	const float* x;
	int64_t length;
	bool reflect;
	float gain, emphasis;

	// inside returns a sample that is there, as are those of a whole frame in most cases.
	__device__ void inside(int64_t i, float& v) const {
		v = x[i];
		if (emphasis != 0.0f && i > 0) v = fmaf(-emphasis, x[i - 1], v);
		v *= gain;
	}

	// The same without gain, which is among the factors of the window.
	__device__ void inside(int64_t i, Pair& v) const {
		v = {x[i], 0.0f};
		if (emphasis != 0.0f && i > 0) v = v + Pair{-emphasis, 0.0f} * Pair{x[i - 1], 0.0f};
	}

	template <class T>
	__device__ void at(int64_t i, T& v) const {
		if (reflect) {
			if (i < 0) i = -i;
			if (i >= length) i = 2 * (length - 1) - i;
		}
		if (i >= 0 && i < length) inside(i, v);
	}
};

// logarithm takes the rules from the mel power on. NaN passes.
__device__ inline float logarithm(const Mel& a, float v) {
	if (a.Lowest != 0.0f && v < a.Lowest) v = a.Lowest;
	if (a.Highest != 0.0f && v > a.Highest) v = a.Highest;
	v += a.Added;
	if (a.Log == 1) return logf(v);
	if (a.Log == 2) return log10f(v);
	return v;
}

// What load asks of numbers of a kind: 0, the mean of a frame by sums of its lanes, and a
// sample less its mean and a part of the one before it.
__device__ inline float mean_of(float sum, uint32_t count) { return warp_sum(sum) / (float)count; }
__device__ inline float emphasised(float v, float before, float mean, float by) { return fmaf(-by, before - mean, v - mean); }

__device__ inline Pair mean_of(Pair sum, uint32_t count) {
#pragma unroll
	for (int mask = 16; mask > 0; mask /= 2) sum = sum + Pair{shfl_xor(sum.high, mask), shfl_xor(sum.low, mask)};
	const float n = (float)count, mean = sum.high / n;
	return {mean, (fmaf(-mean, n, sum.high) + sum.low) / n};
}
__device__ inline Pair emphasised(Pair v, Pair before, Pair mean, float by) {
	return (v + -mean) + Pair{-by, 0.0f} * (before + -mean);
}

// load fills pool with a frame: windowed samples in pairs, and zeros. raw holds them as
// they come, in the same place if Within.
template <bool Within, class V, class T>
__device__ void load(const Mel& a, V* pool, T* raw, const Clip& clip, int64_t first) {
	const bool inside = first >= 0 && first + a.Frame <= clip.length;
	T sum = {};
	for (uint32_t from = lane_id(); from < a.Frame; from += 4 * 32) {
		T v[4] = {};
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t at = from + 32 * i;
			if (at >= a.Frame) continue;
			if (inside) {
				clip.inside(first + at, v[i]);
			} else {
				clip.at(first + at, v[i]);
			}
		}
#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			if (from + 32 * i < a.Frame) raw[from + 32 * i] = v[i];
		sum = sum + ((v[0] + v[1]) + (v[2] + v[3]));
	}
	__syncwarp();
	T mean = {};
	if (a.PerFrame) mean = mean_of(sum, a.Frame);
	const T* window = reinterpret_cast<const T*>(a.Tables + a.Window);
	const auto sample = [&](uint32_t i) {
		if (i >= a.Frame) return T{};
		T v = raw[i];
		if (a.PerFrame) v = emphasised(v, raw[i > 0 ? i - 1 : 0], mean, a.Emphasis);
		return v * window[i];
	};
	if constexpr (Within) {
		// Numbers replace the two samples that they are made of, besides which the one before
		// is read: from the end on.
		static_assert(sizeof(V) == 2 * sizeof(T), "in place");
		for (int32_t from = (a.Half - 1) / 32 * 32; from >= 0; from -= 32) {
			const uint32_t i = from + lane_id();
			V v = {};
			if (i < a.Half) v = {sample(2 * i), sample(2 * i + 1)};
			__syncwarp();
			if (i < a.Half) pool[i] = v;
		}
	} else {
		for (uint32_t i = lane_id(); i < a.Half; i += 32) pool[i] = {sample(2 * i), sample(2 * i + 1)};
	}
	__syncwarp();
}

// power_of returns the squared magnitude of a number of the transform of real samples, by
// that of their pairs: of a number and the one that mirrors it, the even and the odd
// samples' are taken apart.
__device__ inline float power_of(float2 z, float2 w, float2 turn) {
	const float2 even = {0.5f * (z.x + w.x), 0.5f * (z.y - w.y)}, odd = {0.5f * (z.y + w.y), 0.5f * (w.x - z.x)};
	const float2 v = plus(even, times(odd, turn));
	return fmaf(v.x, v.x, v.y * v.y);
}
__device__ inline float power_of(Twofold z, Twofold w, Twofold turn) {
	const Twofold even = {z.x + w.x, z.y + -w.y}, odd = {z.y + w.y, w.x + -z.x}; // twice
	const Twofold v = plus(even, times(odd, turn));
	const float x = 0.5f * rounded(v.x), y = 0.5f * rounded(v.y);
	return fmaf(x, x, y * y);
}

// bin returns the mel power of a bin. Long sums are taken in stretches, or they would lose
// digits.
__device__ inline float bin(const Mel& a, const float* power, uint32_t number) {
	const uint32_t* row = a.Tables + a.Bank + 3 * number;
	const float* weights = reinterpret_cast<const float*>(a.Tables + row[2]);
	float total = 0.0f;
	for (uint32_t from = 0; from < row[1]; from += 32) {
		float sum = 0.0f;
		for (uint32_t i = from; i < min(from + 32, row[1]); i++) sum = fmaf(power[row[0] + i], weights[i], sum);
		total += sum;
	}
	return total;
}

// A warp makes frames, one after the other, of complex numbers V and their parts T. Shared
// memory has the turns, and for each warp two pools, or one and room for powers if it
// transforms within.
template <int Warps, bool Within, class V, class T>
__device__ void frames_of_warps(const Mel& a) {
	release_dependents();
	V* turns = dynamic_shared<V>();
	const V* table = reinterpret_cast<const V*>(a.Tables);
	for (uint32_t i = threadIdx.x; i < 2 * a.Half; i += 32 * Warps) turns[i] = table[i];
	__syncthreads();
	V* pool = turns + 2 * a.Half + (a.Half + (Within ? a.Half / 4 + 1 : a.Half)) * warp_id();
	V* other = pool + a.Half;
	for (uint32_t n = 0; n < a.Each; n++) {
		const uint64_t number = ((uint64_t)blockIdx.x * Warps + warp_id()) * a.Each + n;
		if (number >= a.Count) return;
		const uint32_t item = (uint32_t)number / a.Frames, frame = (uint32_t)number % a.Frames;
		const uint32_t length = rows::number_of(a.Lengths, item, a.Reflect ? max(a.Left, a.Right) : 0);
		float* y = rows::at(a.Y, item, frame, 0);
		float top = -infinity();
		if (frame < frames_of(a, length)) {
			const Clip clip = {rows::at(a.X, item, 0, 0), length, a.Reflect != 0, a.Gain, a.PerFrame ? 0.0f : a.Emphasis};
			load<Within>(a, pool, reinterpret_cast<T*>(Within ? pool : other), clip, (int64_t)frame * a.Hop - a.Left);
			const V* spectrum = pool;
			if constexpr (Within) {
				transform_within(a, turns, pool);
			} else {
				spectrum = transform(a, turns, pool, other);
			}
			float* power = reinterpret_cast<float*>(spectrum == pool ? other : pool);
			for (uint32_t k = lane_id(); k <= a.Half; k += 32)
				power[k] = power_of(spectrum[k < a.Half ? k : 0], spectrum[k > 0 ? a.Half - k : 0], turns[k]);
			__syncwarp();
			for (uint32_t m = lane_id(); m < a.Mels; m += 32) {
				const float v = logarithm(a, bin(a, power, m));
				y[m] = v;
				top = max_or_nan(top, v);
			}
		} else {
			for (uint32_t m = lane_id(); m < a.Mels; m += 32) y[m] = 0.0f;
		}
		if (a.Largest != nullptr) {
			top = warp_reduce(top, LargestOrNaN()); // NaN reaches all values of the item
			if (lane_id() == 0) a.Largest[number] = top;
		}
		__syncwarp(); // the pools are still read
	}
}

template <int Warps>
__device__ void frames(const Mel& a) {
	frames_of_warps<Warps, false, float2, float>(a);
}

// Pre-emphasis leaves low bins of noise a thousandth of the power of the others, whose
// rounding they must not show. Several warps transform within, or few would fit.
template <int Warps>
__device__ void twofold(const Mel& a) {
	frames_of_warps<Warps, (Warps > 1), Twofold, Pair>(a);
}

}  // namespace mel
