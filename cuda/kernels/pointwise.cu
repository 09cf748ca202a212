// Map, Magnitude, Add, Scale, GLU and SwiGLU. A block takes 512 quads of elements, a
// thread two of them; see places in rows.cuh.
#include "epilogue.cuh"
#include "rows.cuh"

namespace pointwise {

using rows::Each;
using rows::Place;

// each applies f to the elements of quads.
template <class F>
__device__ float4 each(float4 a, F f) {
	return {f(a.x), f(a.y), f(a.z), f(a.w)};
}

template <class F>
__device__ float4 each(float4 a, float4 b, F f) {
	return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w)};
}

// visit stores what f makes of each element of X.
template <class A, class F>
__device__ void visit(const A& a, F f) {
	Place p[Each];
	rows::places(a, p);
	float4 v[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) v[i] = rows::load(rows::at(a.X, p[i]), p[i].left, a.Vectors & rows::VectorX);
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, each(v[i], f));
}

// pairs stores what f makes of two elements of a row of X: those that are as far from the
// elements number first and second as the result is from the beginning of its row.
template <class A, class F>
__device__ void pairs(const A& a, int64_t first, int64_t second, F f) {
	Place p[Each];
	rows::places(a, p);
	float4 v[Each], w[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		v[i] = rows::load(rows::at(a.X, p[i]) + first, p[i].left, a.Vectors & rows::VectorX);
		w[i] = rows::load(rows::at(a.X, p[i]) + second, p[i].left, a.Vectors & rows::VectorX);
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, each(v[i], w[i], f));
}

// map_as is map for one kind of epilogue: so the kind is looked at once.
template <uint32_t Kind>
__device__ void map_as(const Map& a) {
	visit(a, [&](float v) { return apply({Kind, a.Epilogue.Alpha}, v, v); });
}

__device__ void map(const Map& a) {
	switch (a.Epilogue.Kind) {
	case KindSiLU:
		return map_as<KindSiLU>(a);
	case KindReLU:
		return map_as<KindReLU>(a);
	case KindLeaky:
		return map_as<KindLeaky>(a);
	case KindGELU:
		return map_as<KindGELU>(a);
	case KindTanh:
		return map_as<KindTanh>(a);
	case KindSigmoid:
		return map_as<KindSigmoid>(a);
	}
	map_as<KindNone>(a);
}

__device__ void scale(const Scale& a) {
	visit(a, [&](float v) { return a.Factor * v; });
}

// length returns sqrt(re² + im²). Both are scaled by a power of two, so that the larger is
// about one. An infinity outdoes NaN.
__device__ inline float length(float re, float im) {
	const uint32_t a = bits_of(re) & 0x7fffffffu, b = bits_of(im) & 0x7fffffffu, infinite = 0x7f800000u;
	if (max(a, b) >= infinite) return a == infinite || b == infinite ? infinity() : quiet_nan();
	const uint32_t exponent = min(max(max(a, b) & infinite, 0x00800000u), 0x7e000000u);
	const float down = float_of(0x7f000000u - exponent);
	const float s = float_of(a) * down, t = float_of(b) * down;
	return sqrtf(fmaf(s, s, t * t)) * float_of(exponent);
}

__device__ void magnitude(const Magnitude& a) { pairs(a, 0, a.Width, length); }

__device__ void add(const Addition& a) {
	Place p[Each];
	rows::places(a, p);
	float4 v[Each], w[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		v[i] = rows::load(rows::at(a.A, p[i]), p[i].left, a.Vectors & rows::VectorX);
		w[i] = rows::load(rows::at(a.B, p[i]), p[i].left, a.Vectors & rows::VectorB);
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		const float4 sum = each(v[i], w[i], [](float x, float y) { return x + y; });
		rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, sum);
	}
}

// small is v·sigmoid(g), with swish times g, where the exponential of g may be too small to
// be told from 0 but meet a large v: it comes in two factors.
__device__ inline float small(float v, float g, bool swish) {
	const float root = expf(0.5f * fmaxf(g, -174.0f));
	return (swish ? root * g : root) * v * root;
}

// gated is v·sigmoid(g), with swish times g. The reciprocal is of a number from 1 to 1e35,
// where it is right to the last place but one.
__device__ inline float gated(float v, float g, bool swish) {
	if (g < -80.0f) return small(v, g, swish);
	const float open = v * reciprocal_flush(1.0f + expf(-g));
	return swish ? open * g : open;
}

__device__ void gate(const Gate& a) {
	const bool swish = a.Swish;
	pairs(a, a.Value, a.Gate, [=](float v, float g) { return gated(v, g, swish); });
}

}  // namespace pointwise
