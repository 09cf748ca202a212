// Products of warpgroups.
#include "device.h"

#include "args.cuh"

using namespace kernels;

#include "bulk.h"
#include "gang.h"
#include "matrix.h"
#include "warpgroup.h"

namespace emulate {

namespace {

constexpr int Depth = 16;

// chunk reads eight halves of an operand that a descriptor names, which lie side by side:
// of row `row` of a panel from column `column` on.
void chunk(const Block& b, uint64_t descriptor, int row, int column, float* out, int step) {
	const uint32_t start = uint32_t(descriptor & 0x3fff) << 4, panels = uint32_t(descriptor >> 16 & 0x3fff) << 4,
	               groups = uint32_t(descriptor >> 32 & 0x3fff) << 4;
	const uint32_t at = start + row / 8 * groups + row % 8 * 128 + column / 64 * panels + column % 64 * 2;
	if (at + 16 > b.shared_bytes) fail("a product reads byte %u of %u bytes of shared memory", at, b.shared_bytes);
	half h[8];
	memcpy(h, swizzled(b.shared + at, 3), sizeof h);
	for (int i = 0; i < 8; i++) out[i * step] = to_float(h[i]);
}

void multiply(const Block& b, const Product& p) {
	float left[64][Depth];
	static thread_local Columns right[256 / 8][Depth];
	for (int r = 0; r < 64; r++) {
		if (!p.registers) {
			for (int k = 0; k < Depth; k += 8) chunk(b, p.left, r, k, &left[r][k], 1);
			continue;
		}
		for (int k = 0; k < Depth; k++) {
			const int g = r % 8, t = k / 2 % 4, i = r / 8 % 2 + 2 * (k / 8);
			const float2 v = unpack_half(p.a[32 * (r / 16) + 4 * g + t][i]);
			left[r][k] = k % 2 == 0 ? v.x : v.y;
		}
	}
	for (int n = 0; n < p.columns; n += p.across ? 8 : 1) {
		if (p.across) {
			for (int k = 0; k < Depth; k++) chunk(b, p.right, k, n, right[n / 8][k], 1);
		} else {
			for (int k = 0; k < Depth; k += 8) chunk(b, p.right, n, k, &right[n / 8][k][n % 8], 8);
		}
	}
	for (int r = 0; r < 64; r++) {
		float* const* at = p.c + r / 16 * 32 + r % 8 * 4;
		for (int n = 0; n < p.columns / 8; n++) {
			const int i = 4 * n + r / 8 % 2 * 2;
			Columns c = {};
			if (p.add) {
				for (int t = 0; t < 4; t++) c[2 * t] = at[t][i], c[2 * t + 1] = at[t][i + 1];
			}
			add_products(c, left[r], right[n], Depth, true);
			for (int t = 0; t < 4; t++) at[t][i] = c[2 * t], at[t][i + 1] = c[2 * t + 1];
		}
	}
}

}  // namespace

uint64_t wgmma_descriptor(const void* p, uint32_t panels, uint32_t groups) {
	return uint64_t(shared_offset(p) >> 4 & 0x3fff) | uint64_t(panels >> 4) << 16 | uint64_t(groups >> 4) << 32 | uint64_t(1) << 62;
}

void wgmma(const Wgmma& w) {
	meet_warpgroup(
	    [](WarpGroup* g) {
		    g->products.emplace_back();
		    Product& p = g->products.back();
		    const Wgmma& first = *static_cast<const Wgmma*>(g->data[0]);
		    p.registers = first.a != nullptr;
		    p.left = first.left;
		    p.right = first.right;
		    p.columns = first.columns;
		    p.across = first.across;
		    p.add = first.add;
		    p.group = g->group;
		    for (int i = 0; i < 128; i++) {
			    const Wgmma& w = *static_cast<const Wgmma*>(g->data[i]);
			    if ((w.a != nullptr) != p.registers || w.left != p.left || w.right != p.right || w.columns != p.columns ||
			        w.across != p.across || w.add != p.add) {
				    fail("wgmma of different operands in a warpgroup");
			    }
			    p.c[i] = w.c;
			    if (p.registers) memcpy(p.a[i], w.a, sizeof p.a[i]);
		    }
	    },
	    const_cast<Wgmma*>(&w), "wgmma");
}

// All threads of the group have committed when they meet to wait.
void wgmma_commit() {
	if (self()->thread.x % 128 == 0) warpgroup()->group++;
}

void wgmma_wait(uint32_t newest) {
	struct Wait {
		uint32_t newest;
	} w = {newest};
	meet_warpgroup(
	    [](WarpGroup* g) {
		    const uint32_t newest = static_cast<const Wait*>(g->data[0])->newest;
		    while (!g->products.empty() && g->products.front().group + newest < g->group) {
			    multiply(*self()->block, g->products.front());
			    g->products.pop_front();
		    }
	    },
	    &w, "wgmma_wait");
}

WarpGroup* warpgroup() {
	const Fiber* f = self();
	return &f->block->groups[f->thread.x / 128];
}

void meet_warpgroup(void (*combine)(WarpGroup*), void* data, const char* what) {
	Fiber* f = self();
	Gang* gang = f->block->gang;
	WarpGroup* g = warpgroup();
	if (f->block_dim.x % 128 != 0) fail("%s in a block that is not made of warpgroups", what);
	if (g->arrived == 0) {
		g->what = what;
	} else if (g->what != what) {
		fail("%s, while other threads of the warpgroup are in %s", what, g->what);
	}
	g->data[f->thread.x % 128] = data;
	g->waiting[f->thread.x % 128] = f;
	if (++g->arrived < 128) {
		gang->wait(what);
		return;
	}
	combine(g);
	g->arrived = 0;
	for (Fiber* other : g->waiting) {
		if (other != f) gang->wake(other);
	}
}

}  // namespace emulate
