// Matrix units.
#include <math.h>

#include "device.h"
#include "matrix.h"

namespace emulate {

namespace {

// The matrices of one instruction, as floats.
struct Product {
	float a[16][16], b[8][16];
};

float low(uint32_t w, Operand type) { return type == Operand::F16 ? unpack_half(w).x : unpack_bf16(w).x; }
float high(uint32_t w, Operand type) { return type == Operand::F16 ? unpack_half(w).y : unpack_bf16(w).y; }

template <Operand Type, int Depth>
void multiply(void* const* lanes, uint32_t present) {
	if (present != 0xffffffffu) fail("mma with lanes that have exited");
	Product p;
	for (int l = 0; l < 32; l++) {
		const Mma& m = *static_cast<const Mma*>(lanes[l]);
		const int g = l / 4, t = l % 4;
		if (Type == Operand::TF32) {
			for (int i = 0; i < 4; i++) p.a[g + 8 * (i % 2)][t + 4 * (i / 2)] = float_of(m.a[i] & 0xffffe000u);
			for (int i = 0; i < 2; i++) p.b[g][t + 4 * i] = float_of(m.b[i] & 0xffffe000u);
			continue;
		}
		for (int i = 0; i < Depth / 4; i++) {
			p.a[g + 8 * (i % 2)][2 * t + 8 * (i / 2)] = low(m.a[i], Type);
			p.a[g + 8 * (i % 2)][2 * t + 1 + 8 * (i / 2)] = high(m.a[i], Type);
		}
		for (int i = 0; i < Depth / 8; i++) {
			p.b[g][2 * t + 8 * i] = low(m.b[i], Type);
			p.b[g][2 * t + 1 + 8 * i] = high(m.b[i], Type);
		}
	}
	for (int l = 0; l < 32; l++) {
		const Mma& m = *static_cast<const Mma*>(lanes[l]);
		const int g = l / 4, t = l % 4;
		for (int i = 0; i < 4; i++) {
			m.c[i] = accumulate(m.c[i], p.a[g + 8 * (i / 2)], p.b[2 * t + i % 2], Depth, 1, 1);
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

float accumulate(float c, const float* a, const float* b, int n, int step_a, int step_b) {
	double product[32];
	double largest = fabs(double(c)), plain = c;
	for (int i = 0; i < n; i++) {
		product[i] = double(a[i * step_a]) * double(b[i * step_b]);
		plain += product[i];
		const double m = fabs(product[i]);
		largest = m > largest ? m : largest;
	}
	if (!(fabs(plain) < INFINITY) || largest == 0.0) return float(plain);
	// 2^(25−e), where e is the exponent of the largest.
	const int e = int(same_bits<uint64_t>(largest) >> 52 & 0x7ff) - 1023;
	const double scale = same_bits<double>(uint64_t(1023 + 25 - e) << 52);
	double sum = double(int64_t(double(c) * scale));
	for (int i = 0; i < n; i++) sum += double(int64_t(product[i] * scale));
	if (sum == 0.0) return 0.0f;
	// Cut to 24 bits: those of the double below them are cleared.
	const double kept = same_bits<double>(same_bits<uint64_t>(sum / scale) & ~((uint64_t(1) << 29) - 1));
	return float(kept);
}

}  // namespace emulate
