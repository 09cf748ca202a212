// Matrix units.
#include <math.h>

#include "device.h"
#include "matrix.h"

namespace emulate {

namespace {

// The matrices of one instruction, as floats.
struct Tiles {
	float a[16][16];
	Columns b[16];
};

float low(uint32_t w, Operand type) { return type == Operand::F16 ? unpack_half(w).x : unpack_bf16(w).x; }
float high(uint32_t w, Operand type) { return type == Operand::F16 ? unpack_half(w).y : unpack_bf16(w).y; }

template <Operand Type, int Depth>
void multiply(void* const* lanes, uint32_t present) {
	if (present != 0xffffffffu) fail("mma with lanes that have exited");
	Tiles p;
	for (int l = 0; l < 32; l++) {
		const Mma& m = *static_cast<const Mma*>(lanes[l]);
		const int g = l / 4, t = l % 4;
		if (Type == Operand::TF32) {
			for (int i = 0; i < 4; i++) p.a[g + 8 * (i % 2)][t + 4 * (i / 2)] = float_of(m.a[i] & 0xffffe000u);
			for (int i = 0; i < 2; i++) p.b[t + 4 * i][g] = float_of(m.b[i] & 0xffffe000u);
			continue;
		}
		for (int i = 0; i < Depth / 4; i++) {
			p.a[g + 8 * (i % 2)][2 * t + 8 * (i / 2)] = low(m.a[i], Type);
			p.a[g + 8 * (i % 2)][2 * t + 1 + 8 * (i / 2)] = high(m.a[i], Type);
		}
		for (int i = 0; i < Depth / 8; i++) {
			p.b[2 * t + 8 * i][g] = low(m.b[i], Type);
			p.b[2 * t + 1 + 8 * i][g] = high(m.b[i], Type);
		}
	}
	for (int row = 0; row < 16; row++) {
		Columns c;
		float* at[4];
		for (int t = 0; t < 4; t++) {
			at[t] = static_cast<const Mma*>(lanes[row % 8 * 4 + t])->c + row / 8 * 2;
			c[2 * t] = at[t][0];
			c[2 * t + 1] = at[t][1];
		}
		add_products(c, p.a[row], p.b, Depth, Type == Operand::F16);
		for (int t = 0; t < 4; t++) {
			at[t][0] = c[2 * t];
			at[t][1] = c[2 * t + 1];
		}
	}
}

template <int Count, bool Transposed>
void gather(void* const* lanes, uint32_t present) {
	if (present != 0xffffffffu) fail("ldmatrix with lanes that have exited");
	uint16_t element[Count][8][8];
	for (int l = 0; l < 8 * Count; l++) {
		const void* row = static_cast<const Ldmatrix*>(lanes[l])->row;
		if (reinterpret_cast<uintptr_t>(row) & 15) fail("ldmatrix: lane %d names a row at %p, which is not aligned", l, row);
		memcpy(element[l / 8][l % 8], row, 16);
	}
	for (int l = 0; l < 32; l++) {
		Ldmatrix* m = static_cast<Ldmatrix*>(lanes[l]);
		const int g = l / 4, t = l % 4;
		for (int i = 0; i < Count; i++) {
			const uint32_t x = Transposed ? element[i][2 * t][g] : element[i][g][2 * t];
			const uint32_t y = Transposed ? element[i][2 * t + 1][g] : element[i][g][2 * t + 1];
			m->r[i] = x | y << 16;
		}
	}
}

}  // namespace

void ldmatrix(Ldmatrix& m, int count, bool transposed) {
	if (count == 4) {
		meet(transposed ? gather<4, true> : gather<4, false>, &m, "ldmatrix");
	} else {
		meet(transposed ? gather<2, true> : gather<2, false>, &m, "ldmatrix");
	}
}

void mma(Mma& m, Operand type, int depth) {
	Combine f = multiply<Operand::F16, 16>;
	if (type == Operand::F16 && depth == 8) f = multiply<Operand::F16, 8>;
	if (type == Operand::BF16) f = multiply<Operand::BF16, 16>;
	if (type == Operand::TF32) f = multiply<Operand::TF32, 8>;
	meet(f, &m, "mma");
}

namespace {

// accumulate is add_products for one column and any operands.
float accumulate(float c, const float* a, const Columns* b, int column, int depth) {
	double product[16];
	double largest = fabs(double(c)), plain = c;
	for (int k = 0; k < depth; k++) {
		product[k] = double(a[k]) * double(b[k][column]);
		plain += product[k];
		const double m = fabs(product[k]);
		largest = m > largest ? m : largest;
	}
	if (!(fabs(plain) < INFINITY) || largest == 0.0) return float(plain);
	// 2^(25−e), where e is the exponent of the largest.
	const int e = int(same_bits<uint64_t>(largest) >> 52 & 0x7ff) - 1023;
	const double scale = same_bits<double>(uint64_t(1023 + 25 - e) << 52);
	double sum = double(int64_t(double(c) * scale));
	for (int k = 0; k < depth; k++) sum += double(int64_t(product[k] * scale));
	if (sum == 0.0) return 0.0f;
	// Cut to 24 bits: those of the double below them are cleared.
	const double kept = same_bits<double>(same_bits<uint64_t>(sum / scale) & ~((uint64_t(1) << 29) - 1));
	return float(kept);
}

}  // namespace

// The loops over columns become vectors. Scaled addends are below 2^26, so that the sum of
// 17 fits into 32 bits.
void add_products(Columns& c, const float* a, const Columns* b, int depth, bool halves) {
	constexpr uint32_t Magnitude = 0x7fffffffu, Exponent = 0x7f800000u;
	float product[16][8];
	uint32_t largest[8], rare = !halves;
	for (int j = 0; j < 8; j++) largest[j] = bits_of(c[j]) & Magnitude;
	for (int k = 0; k < depth; k++) {
		for (int j = 0; j < 8; j++) {
			product[k][j] = a[k] * b[k][j];
			const uint32_t m = bits_of(product[k][j]) & Magnitude;
			largest[j] = m > largest[j] ? m : largest[j];
		}
	}
	float scale[8], inverse[8];
	for (int j = 0; j < 8; j++) {
		const uint32_t e = largest[j] & Exponent;
		rare |= e < (60u << 23) || e >= (250u << 23);
		scale[j] = float_of(((127 + 25 + 127) << 23) - e);
		inverse[j] = float_of(e - (25u << 23));
	}
	if (rare) { // not finite, zero or far from 1
		for (int j = 0; j < 8; j++) c[j] = accumulate(c[j], a, b, j, depth);
		return;
	}
	int32_t sum[8];
	for (int j = 0; j < 8; j++) sum[j] = int32_t(c[j] * scale[j]);
	for (int k = 0; k < depth; k++) {
		for (int j = 0; j < 8; j++) sum[j] += int32_t(product[k][j] * scale[j]);
	}
	for (int j = 0; j < 8; j++) {
		const double kept = same_bits<double>(same_bits<uint64_t>(double(sum[j])) & ~((uint64_t(1) << 29) - 1));
		c[j] = float(kept) * inverse[j];
	}
}

}  // namespace emulate
