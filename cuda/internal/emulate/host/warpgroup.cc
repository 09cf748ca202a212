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

// element reads a half of an operand that a descriptor names: row r of a panel whose rows
// run along the depth, or row k of panels that run across it.
float element(const Block& b, uint64_t descriptor, bool across, int r, int k) {
	const uint32_t start = uint32_t(descriptor & 0x3fff) << 4, panels = uint32_t(descriptor >> 16 & 0x3fff) << 4,
	               groups = uint32_t(descriptor >> 32 & 0x3fff) << 4;
	const uint32_t row = across ? k : r, column = across ? r : k;
	const uint32_t at = start + row / 8 * groups + row % 8 * 128 + column / 64 * panels + column % 64 * 2;
	if (at + 2 > b.shared_bytes) fail("a product reads byte %u of %u bytes of shared memory", at, b.shared_bytes);
	half h;
	memcpy(&h, swizzled(b.shared + at, 3), 2);
	return to_float(h);
}

void multiply(const Block& b, const Product& p) {
	static thread_local float left[64][Depth], right[256][Depth];
	for (int r = 0; r < 64; r++) {
		for (int k = 0; k < Depth; k++) {
			if (!p.registers) {
				left[r][k] = element(b, p.left, false, r, k);
				continue;
			}
			const int g = r % 8, t = k / 2 % 4, i = r / 8 % 2 + 2 * (k / 8);
			const float2 v = unpack_half(p.a[32 * (r / 16) + 4 * g + t][i]);
			left[r][k] = k % 2 == 0 ? v.x : v.y;
		}
	}
	for (int n = 0; n < p.columns; n++) {
		for (int k = 0; k < Depth; k++) right[n][k] = element(b, p.right, p.across, n, k);
	}
	for (int thread = 0; thread < 128; thread++) {
		float* c = p.c[thread];
		const int row = 16 * (thread / 32) + thread % 32 / 4, t = thread % 4;
		for (int i = 0; i < p.columns / 2; i++) {
			const int r = row + 8 * (i / 2 % 2), n = 8 * (i / 4) + 2 * t + i % 2;
			c[i] = accumulate(p.add ? c[i] : 0.0f, left[r], right[n], Depth, 1, 1);
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
