// The tile of the kernels that make halves of keys and values themselves.
#pragma once

#include "attention_wide.cuh"

namespace attention {

// The tile of a block of a cluster, each of which has 128 queries of a head, and makes its
// part of the halves of each step for all of them. Each set of barriers is for one walk over
// the works: blocks of the second walk are for themselves, Cluster 1.
//
// Shared memory holds the stages, these barriers, and F32 that is on its way, of each warp.
template <int D, int Stages, int Cluster, int Set>
struct DirectTile : WideTile<D, Stages, 2> {
	using Base = WideTile<D, Stages, 2>;
	static constexpr uint32_t Makers = 4, Readers = 8, Threads = 384, MostAhead = 8;  // warps, threads of a block, and parts on their way

	struct Barriers {
		Mbarrier keys[Stages], values[Stages];            // are there
		Mbarrier keys_free[Stages], values_free[Stages];  // all warps of the cluster are done with
	};
	struct alignas(128) State {
		Barriers sets[2];
		Mbarrier loaded[Makers][MostAhead];
		uint32_t again[WideWorks];  // whether not all numbers of a work were usual
	};

	static __device__ State& state() { return *reinterpret_cast<State*>(dynamic_shared<half>() + 2 * Stages * Base::Stage); }
	static __device__ float* waiting() { return reinterpret_cast<float*>(&state() + 1); }
	static __device__ Barriers& barriers() { return state().sets[Set]; }

	static __device__ void prepare() {
		State& s = state();
		if (threadIdx.x < WideWorks) s.again[threadIdx.x] = 0;
		if (threadIdx.x < Makers * MostAhead) mbarrier_init(&s.loaded[0][threadIdx.x], 1);
		if (threadIdx.x < 2 * Stages) {
			const uint32_t set = threadIdx.x / Stages, i = threadIdx.x % Stages, readers = set == 0 ? Readers * Cluster : Readers;
			Barriers& b = s.sets[set];
			mbarrier_init(&b.keys[i], Makers);
			mbarrier_init(&b.values[i], Makers);
			mbarrier_init(&b.keys_free[i], readers);
			mbarrier_init(&b.values_free[i], readers);
		}
		mbarrier_ready();
		__syncthreads();
		cluster_reach();
	}

	// ready waits for all blocks to be prepared. Each thread calls it once, before it reaches
	// into others.
	static __device__ void ready() { cluster_wait(); }

	static __device__ void leave(Mbarrier* b) {
		if constexpr (Cluster == 1) {
			if (lane_id() == 0) mbarrier_arrive(b);
		} else {
			if (lane_id() < Cluster) mbarrier_arrive_remote(cluster_address(b, lane_id()));
		}
	}

	// repeat notes that all blocks of the cluster are to do a work again. All lanes take part.
	static __device__ void repeat(int i) {
		if (lane_id() >= Cluster) return;
		if (lane_id() == cluster_rank()) state().again[i] = 1;  // seen by this warp at once
		else store_remote(cluster_address(&state().again[i], lane_id()), 1u);
	}

	// drain waits for all to have left the stages, in turn: what arrives at a block that has ended
	// is a fault, and meeting does not say that it has arrived.
	static __device__ void drain(typename Base::Turn& turn) {
		Barriers& b = barriers();
		for (int i = 0; i < Stages; i++, turn.next()) {
			mbarrier_wait(&b.keys_free[turn.stage], turn.parity ^ 1);
			mbarrier_wait(&b.values_free[turn.stage], turn.parity ^ 1);
		}
	}

	// meet waits until the cluster has ended its walk. If nothing was noted, nothing is to be
	// ordered, and what was written to the device is not waited for.
	static __device__ void meet() {
		uint32_t noted = 0;
		__syncwarp();
		for (int i = lane_id(); i < WideWorks; i += 32) noted |= state().again[i];
		if (warp_ballot(noted != 0)) __threadfence();
		cluster_reach();
		cluster_wait();
	}

	// Where four elements of a row begin, in halves from the begin of the stage: of keys, and of
	// values.
	static __device__ int key_place(int row, int quad) {
		return (quad / 16 * Base::Keys + row) * 64 + ((quad % 16 / 2) ^ (row % 8)) * 8 + quad % 2 * 4;
	}
	static __device__ int value_place(int row, int quad) {
		return row / BlockRows * Base::Block + (quad / 16 * BlockRows + row % BlockRows) * 64 + ((quad % 16 / 2) ^ (row % 8)) * 8 + quad % 2 * 4;
	}
};

__device__ inline void store_quad(half* to, uint2 h) { *reinterpret_cast<uint2*>(to) = h; }

// A Ring is where a warp is among the parts that wait.
template <int Ahead>
struct Ring {
	uint32_t slot = 0, parity = 0;
	__device__ void next() {
		if (++slot == Ahead) slot = 0, parity ^= 1;
	}
};

// A Maker is a lane of the warpgroup that makes halves for the cluster, of numbers of a usual
// size: a block has Part rows of the pair of each step, a warp Own of them, which Each at a
// time are Quads fours of a lane. Copies of Ahead parts, of keys and values in turn, are on
// their way at any time, by tensor maps, which takes no registers. What is made goes
// into the block's own stage, and from there into those of the others.
template <int D, int Stages, int Cluster, int Ahead>
struct Maker {
	using Tile = DirectTile<D, Stages, Cluster, 0>;
	using Base = typename Tile::Base;
	using Turn = typename Tile::Turn;
	static constexpr int Part = Tile::Keys / Cluster, Own = Part / 4, Lanes = D / 4, Each = 32 / Lanes;
	static constexpr int Quads = Own / Each, Panels = D / 64, Batch = 4;  // read at a time
	static constexpr int Waiting = Ahead * Part * D;  // floats of what is on its way
	static_assert(Own % 8 == 0 && BlockRows % Own == 0, "rows of a warp lie in a row of a block");
	static_assert(Ahead % 2 == 0 && Ahead <= Tile::MostAhead, "keys and values have places of their own");

	const AttentionDirect& a;
	Ring<Ahead>& ring;
	int item, head;
	int row;   // of the warp's first of keys or values that are asked for next
	int left;  // rows that are there, from the lane's first of the step
	int asks;  // steps to be asked for

	static __device__ int first() { return cluster_rank() * Part + warp_id() * Own; }
	static __device__ float* place(uint32_t slot) { return Tile::waiting() + (slot * 4 + warp_id()) * (Own * D); }

	__device__ Maker(const AttentionDirect& a, Ring<Ahead>& ring, const Slab& slab, int start, int steps)
	    : a(a), ring(ring), item(slab.item), head(slab.head), row(start + first()), left(slab.keys - row - lane_id() / Lanes), asks(steps) {
#pragma unroll
		for (int i = 0; i < Ahead; i += 2) {
			ask<false>((ring.slot + i) % Ahead);
			ask<true>((ring.slot + i + 1) % Ahead);
		}
	}

	// fetch asks for rows of a tensor. One lane does it.
	__device__ void fetch(uint32_t slot, const TensorMap& map, int row) const {
		Mbarrier* const b = &Tile::state().loaded[warp_id()][slot];
		mbarrier_expect(b, Own * D * sizeof(float));
		bulk_load(place(slot), &map, b, 0, row, head, item);
	}

	// ask asks for keys or values of a step, in turn. Beyond rows and dimensions is 0.
	template <bool Values>
	__device__ void ask(uint32_t slot) {
		if (asks > 0 && lane_id() == 0) fetch(slot, Values ? a.Values : a.Keys, row);
		if (Values) row += Tile::Keys, asks--;
	}

	// Where the warp's part of a stage begins.
	template <bool Values>
	static __device__ half* part(const Turn& turn) {
		return (Values ? Base::values() + Tile::value_place(first(), 0) : Base::keys() + Tile::key_place(first(), 0)) + turn.stage * Base::Stage;
	}
	template <bool Values>
	static constexpr int Panel = 64 * (Values ? BlockRows : Tile::Keys);

	// make makes the keys or values of a step of work i, in turn, gives them to all blocks and
	// asks for what comes later.
	template <bool Values>
	__device__ void make(int i, const Turn& turn) {
		typename Tile::Barriers& b = Tile::barriers();
		const int lane = lane_id(), quad = lane % Lanes, line = lane / Lanes;
		half* const to = part<Values>(turn) + quad / 16 * Panel<Values> + line * 64 + quad % 2 * 4;
		const int chunk = (quad % 16 / 2) ^ line;
		const float* const from = place(ring.slot) + lane * 4;
		uint32_t most = 0;
		mbarrier_wait(Values ? &b.values_free[turn.stage] : &b.keys_free[turn.stage], turn.parity ^ 1);
		mbarrier_wait(&Tile::state().loaded[warp_id()][ring.slot], ring.parity);
#pragma unroll 1
		for (int n = 0; n < Quads; n += Batch) {
			float4 v[Batch];
#pragma unroll
			for (int j = 0; j < Batch; j++) v[j] = load4(from + (n + j) * 128);
#pragma unroll
			for (int j = 0; j < Batch; j++) {
				uint2 h = {pack_half(v[j].x, v[j].y), pack_half(v[j].z, v[j].w)};
				if ((n + j) * Each >= left) h = {0, 0};
				most = larger_halves(larger_halves(most, h.x), h.y);
				store_quad(to + (n + j) * Each * 64 + (chunk ^ ((n + j) * Each % 8)) * 8, h);
			}
		}
		fence_async();
		// From 2^15 on, or no numbers; and whether there are any from 2^-10 on: of those that are
		// smaller halves have not all digits.
		const uint32_t largest = max(most >> 16, most & 0xffffu);
		if (warp_ballot(largest >= 0x7800u) || (!warp_ballot(largest >= 0x1400u) && warp_ballot(any(from)))) Tile::repeat(i);
		pass<Values>(turn);
		ask<Values>(ring.slot);
		ring.next();
		if (Values) left -= Tile::Keys;
	}

	// any reports whether something is not 0 of what a lane has of a part.
	__device__ bool any(const float* from) const {
		bool found = false;
#pragma unroll 1
		for (int n = 0; n < Quads && n * Each < left; n++) {
			const float4 v = load4(from + n * 128);
			found |= !(v.x == 0.0f && v.y == 0.0f && v.z == 0.0f && v.w == 0.0f);
		}
		return found;
	}

	// pass gives what was made to all blocks. The lanes have fenced what they wrote.
	template <bool Values>
	__device__ void pass(const Turn& turn) const {
		typename Tile::Barriers& b = Tile::barriers();
		Mbarrier* const full = Values ? &b.values[turn.stage] : &b.keys[turn.stage];
		constexpr uint32_t Others = Cluster - 1;
		__syncwarp();
		if (lane_id() < Others * Panels) {
			const uint32_t other = (cluster_rank() + 1 + lane_id() % Others) % Cluster;
			const half* from = part<Values>(turn) + lane_id() / Others * Panel<Values>;
			bulk_copy_remote(cluster_address(from, other), from, Own * 64 * sizeof(half), cluster_address(full, other));
		}
		if (lane_id() == 0 && warp_id() == 0) mbarrier_expect(full, Others * Part * D * sizeof(half));
		else if (lane_id() == 0) mbarrier_arrive(full);
	}
};

// Queries of the next work, asked for while one goes on: a lane reads what it has asked for
// itself. They lie in pairs.
template <typename Queries>
struct NextQueries {
	static constexpr int Pairs = 2 * Queries::Steps;  // of a row of a lane

	float2* at;  // of the lane

	__device__ explicit NextQueries(float* shared) : at(reinterpret_cast<float2*>(shared) + (threadIdx.x - 128)) {}

	// ask asks for rows row and row + 8 of a view.
	__device__ void ask(const Slab& s, const View& view, int row) {
		const int t = 2 * (lane_id() % 4);
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const bool live = row + 8 * r < s.queries;
			const float* p = live ? s.row_of(view, row + 8 * r) + t : view.P;
#pragma unroll
			for (int h = 0; h < Pairs; h++) {
				const bool has = live && 8 * h + t < s.dim;
				copy_async<8>(at + (r * Pairs + h) * 256, has ? p + 8 * h : view.P, has ? 8 : 0);
			}
		}
		copy_commit();
	}

	// read returns what was asked for last.
	__device__ void read(typename Queries::Numbers& v) {
		copy_wait<0>();
#pragma unroll
		for (int r = 0; r < 2; r++) {
#pragma unroll
			for (int h = 0; h < Pairs; h++) {
				const float2 x = at[(r * Pairs + h) * 256];
				v[r][h / 2][h % 2 * 2] = x.x, v[r][h / 2][h % 2 * 2 + 1] = x.y;
			}
		}
	}
};

}  // namespace attention
