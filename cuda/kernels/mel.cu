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
	__device__ float inside(int64_t i) const {
		float v = x[i];
		if (emphasis != 0.0f && i > 0) v = fmaf(-emphasis, x[i - 1], v);
		return v * gain;
	}

	__device__ float at(int64_t i) const {
		if (reflect) {
			if (i < 0) i = -i;
			if (i >= length) i = 2 * (length - 1) - i;
		}
		return i < 0 || i >= length ? 0.0f : inside(i);
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

// load fills pool with a frame: windowed samples in pairs, and zeros. raw holds them as
// they come.
__device__ inline void load(const Mel& a, float2* pool, float* raw, const Clip& clip, int64_t first) {
	const bool inside = first >= 0 && first + a.Frame <= clip.length;
	float sum = 0.0f;
	for (uint32_t from = lane_id(); from < a.Frame; from += 4 * 32) {
		float v[4];
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t at = from + 32 * i;
			v[i] = at >= a.Frame ? 0.0f : inside ? clip.inside(first + at) : clip.at(first + at);
		}
#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			if (from + 32 * i < a.Frame) raw[from + 32 * i] = v[i];
		sum += (v[0] + v[1]) + (v[2] + v[3]);
	}
	__syncwarp();
	const float mean = a.PerFrame ? warp_sum(sum) / (float)a.Frame : 0.0f;
	const float* window = reinterpret_cast<const float*>(a.Tables + a.Window);
	const auto sample = [&](uint32_t i) {
		if (i >= a.Frame) return 0.0f;
		float v = raw[i];
		if (a.PerFrame) v = fmaf(-a.Emphasis, raw[i > 0 ? i - 1 : 0] - mean, v - mean);
		return v * window[i];
	};
	for (uint32_t i = lane_id(); i < a.Half; i += 32) pool[i] = {sample(2 * i), sample(2 * i + 1)};
	__syncwarp();
}

// powers leaves the squared magnitudes of the transform of the real samples, of which
// pool has that of the pairs: of each number and the one that mirrors it, the even and the
// odd samples' are taken apart.
__device__ inline void powers(const Mel& a, const float2* turns, float* power, const float2* pool) {
	for (uint32_t k = lane_id(); k <= a.Half; k += 32) {
		const float2 z = pool[k < a.Half ? k : 0], w = pool[k > 0 ? a.Half - k : 0];
		const float2 even = {0.5f * (z.x + w.x), 0.5f * (z.y - w.y)}, odd = {0.5f * (z.y + w.y), 0.5f * (w.x - z.x)};
		const float2 v = plus(even, times(odd, turns[k]));
		power[k] = fmaf(v.x, v.x, v.y * v.y);
	}
	__syncwarp();
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

// A warp makes frames, one after the other. Shared memory has the turns, and two pools for
// each warp.
template <int Warps>
__device__ void frames(const Mel& a) {
	release_dependents();
	float2* turns = dynamic_shared<float2>();
	const float2* table = reinterpret_cast<const float2*>(a.Tables);
	for (uint32_t i = threadIdx.x; i < 2 * a.Half; i += 32 * Warps) turns[i] = {table[i].x, -table[i].y};
	__syncthreads();
	float2* pool = turns + 2 * a.Half * (1 + warp_id());
	float2* other = pool + a.Half;
	for (uint32_t n = 0; n < a.Each; n++) {
		const uint64_t number = ((uint64_t)blockIdx.x * Warps + warp_id()) * a.Each + n;
		if (number >= a.Count) return;
		const uint32_t item = (uint32_t)number / a.Frames, frame = (uint32_t)number % a.Frames;
		const uint32_t length = rows::number_of(a.Lengths, item, a.Reflect ? max(a.Left, a.Right) : 0);
		float* y = rows::at(a.Y, item, frame, 0);
		float top = -infinity();
		if (frame < frames_of(a, length)) {
			const Clip clip = {rows::at(a.X, item, 0, 0), length, a.Reflect != 0, a.Gain, a.PerFrame ? 0.0f : a.Emphasis};
			load(a, pool, reinterpret_cast<float*>(other), clip, (int64_t)frame * a.Hop - a.Left);
			const float2* spectrum = transform(a, turns, pool, other);
			float* power = reinterpret_cast<float*>(spectrum == pool ? other : pool);
			powers(a, turns, power, spectrum);
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

}  // namespace mel
