// Kernels that try what the emulator does, some of them with a mistake.
#include "device.cuh"

#include "sm90.cuh"

namespace {

struct Args {
	float *x, *y;
	uint32_t n, wrong;
	TensorMap map;
};

// y[i] = Σ x, by the warps of a block, and what votes and shuffles give.
void reduce(const Args& a) {
	const float v = a.x[threadIdx.x];
	const float sum = block_sum<256>(v), most = block_max<256>(v);
	if (threadIdx.x == 0) a.y[0] = sum, a.y[1] = most;
	if (warp_id() == 1) {
		a.y[2 + lane_id()] = shfl(v, 5) + shfl_xor(v, 1) + shfl_down(v, 1) + shfl_up(v, 2);
		const uint32_t vote = warp_ballot(v > 0.0f);
		if (lane_id() == 0) a.y[34] = float(__popc(vote));
	}
}

// y = x backwards, through shared memory.
void reverse(const Args& a) {
	float* s = dynamic_shared<float>();
	s[threadIdx.x] = a.x[threadIdx.x];
	if (!a.wrong) __syncthreads();
	a.y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

// y = x, by copies that may not be waited for.
void copies(const Args& a) {
	float* s = dynamic_shared<float>();
	copy_async<4>(s + threadIdx.x, a.x + threadIdx.x, threadIdx.x < a.n ? 4 : 0);
	copy_commit();
	copy_async<4>(s + 64 + threadIdx.x, a.x + 64 + threadIdx.x);
	copy_commit();
	if (a.wrong) copy_wait<1>();
	else copy_wait<0>();
	__syncthreads();
	a.y[threadIdx.x] = s[threadIdx.x];
	a.y[64 + threadIdx.x] = s[64 + threadIdx.x];
}

__noinline__ float large(uint32_t n) {
	volatile char big[80 << 10];
	for (uint32_t i = 0; i < sizeof big; i += 64) big[sizeof big - 1 - i] = char(i);
	return float(big[n]);
}

// Misuse, by number.
void misuse(const Args& a) {
	float* s = dynamic_shared<float>();
	switch (a.wrong) {
	case 0:  // uninitialised memory
		a.y[threadIdx.x] = s[threadIdx.x];
		break;
	case 1:
		a.y[a.n + threadIdx.x] = 1.0f;
		break;
	case 2:
		a.y[threadIdx.x] = a.x[a.n + threadIdx.x];
		break;
	case 3:
		if (threadIdx.x < 10) __syncthreads();
		else if (threadIdx.x == 40) barrier_sync(3, 64);
		else if (threadIdx.x < 64) __syncwarp();
		break;
	case 4:
		if (threadIdx.x % 2) a.y[0] = shfl(1.0f, 0);
		else __syncwarp();
		break;
	case 5:
		s[64 + threadIdx.x] = 1.0f;
		break;
	case 6:
		a.y[threadIdx.x] = load4(a.x + 1).x;
		break;
	case 7:
		a.y[0] = large(a.n);
		break;
	case 8:
		while (load_acquire(reinterpret_cast<uint32_t*>(a.y)) != 7) relax();
		break;
	case 9:
		// The threads that are left are those that count.
		if (threadIdx.x % 2) return;
		__syncthreads();
		a.y[threadIdx.x] = float(__popc(warp_ballot(true)));
		break;
	}
}

// y[64 of thread] = fragments of products of x, by mma_f16, mma_bf16, mma_tf32 and wgmma.
void products(const Args& a) {
	half* s = dynamic_shared<half>();
	bf16* t = reinterpret_cast<bf16*>(s + 16 * 24);
	for (uint32_t i = threadIdx.x; i < 16 * 24; i += 32) {
		s[i] = to_half(a.x[i]);
		t[i] = to_bf16(a.x[i]);
	}
	__syncwarp();
	const uint32_t lane = lane_id();
	auto fragments = [&](const void* p, uint32_t(&left)[4], uint32_t(&right)[2]) {
		const half* h = static_cast<const half*>(p);
		ldmatrix_x4(left, h + lane % 16 * 16 + lane / 16 * 8);
		// B lies as rows of the depth behind A: [16][8].
		ldmatrix_x2_trans(right, h + 16 * 16 + lane % 16 * 8);
	};
	uint32_t left[4], right[2];
	float c[4] = {1.0f, 1.0f, 1.0f, 1.0f};
	fragments(s, left, right);
	mma_f16(c, left, right);
	for (int i = 0; i < 4; i++) a.y[lane * 4 + i] = c[i];
	float d[4] = {};
	fragments(t, left, right);
	mma_bf16(d, left, right);
	for (int i = 0; i < 4; i++) a.y[128 + lane * 4 + i] = d[i];
	float e[4] = {};
	for (int k = 0; k < 2; k++) {
		const uint32_t g = lane / 4, i = lane % 4 + 8 * k;
		for (int j = 0; j < 4; j++) left[j] = to_tf32(a.x[(g + j % 2 * 8) * 16 + i + j / 2 * 4]);
		for (int j = 0; j < 2; j++) right[j] = to_tf32(a.x[16 * 16 + (i + j * 4) * 8 + g]);
		mma_tf32(e, left, right);
	}
	for (int i = 0; i < 4; i++) a.y[256 + lane * 4 + i] = e[i];
}

// A tile of 64×N by a producer and a warpgroup: x is [64 + N][n] halves. Across: B is [n][N].
template <int N, bool Across, bool Registers>
void tile(const Args& a) {
	half* left = dynamic_shared<half>();
	half* right = left + 64 * 64;
	Mbarrier* full = reinterpret_cast<Mbarrier*>(right + N * 64);
	Mbarrier* empty = full + 1;
	if (threadIdx.x == 0) {
		mbarrier_init(full, 1);
		mbarrier_init(empty, 128);
		mbarrier_ready();
	}
	__syncthreads();
	if (threadIdx.x >= 128) {
		registers_less<40>();
		if (warp_id() == 4 && elected()) {
			for (uint32_t k = 0; k < a.n; k += 64) {
				if (k > 0) mbarrier_wait(empty, (k / 64 - 1) & 1);
				mbarrier_expect(full, 64 * 128 + N * 128);
				bulk_load(left, &a.map, full, k, 0, 0);
				for (int i = 0; i < N; i += 64) {
					if (Across) bulk_load(right + i * 64, &a.map, full, i, k, 1);
					else bulk_load(right + i * 64, &a.map, full, k, i, 1);
				}
			}
		}
		return;
	}
	registers_more<232>();
	float c[N / 2] = {};
	for (uint32_t k = 0; k < a.n; k += 64) {
		mbarrier_wait(full, k / 64 & 1);
		wgmma_fence();
		for (int i = 0; i < 4; i++) {
			const uint64_t b = Across ? panel_across<64>(right + i * 16 * 64) : panel(right + i * 16);
			if (Registers) {
				uint32_t r[4];
				const uint32_t row = 16 * warp_id() + lane_id() % 16, chunk = 2 * i + lane_id() / 16;
				ldmatrix_x4(r, left + row * 64 + (chunk ^ row % 8) * 8);
				wgmma_f16<N, Across>(c, r, b);
			} else {
				wgmma_f16<N, Across>(c, panel(left + i * 16), b, k > 0 || i > 0);
			}
		}
		wgmma_commit();
		if (!a.wrong) wgmma_wait<0>();
		wgmma_keep(c);
		mbarrier_arrive(empty);
	}
	const uint32_t row = 16 * warp_id() + lane_id() / 4, column = 2 * (lane_id() % 4);
	for (int i = 0; i < N / 2; i++) a.y[(row + 8 * (i / 2 % 2)) * N + 8 * (i / 4) + column + i % 2] = c[i];
	wgmma_wait<0>();
}

// Two warpgroups take over what a third leaves them; there is not as much if it is wrong.
void registers(const Args& a) {
	if (threadIdx.x >= 128) registers_more<240>();
	else if (a.wrong) registers_less<32>();
	else registers_less<24>();
}

// Blocks of a cluster tell each other their ranks; then y gets them.
void ranks(const Args& a) {
	float* s = dynamic_shared<float>();
	Mbarrier* b = reinterpret_cast<Mbarrier*>(s + 16);
	if (threadIdx.x == 0) {
		mbarrier_init(b, 1);
		mbarrier_ready();
		mbarrier_expect(b, 4 * cluster_size());
	}
	cluster_sync();
	if (threadIdx.x < cluster_size()) {
		const float v = float(blockIdx.x * 10 + threadIdx.x);
		store_async(cluster_address(s + cluster_rank(), threadIdx.x), v, cluster_address(b, threadIdx.x));
	}
	if (!a.wrong) mbarrier_wait_cluster(b, 0);
	if (threadIdx.x < cluster_size()) a.y[blockIdx.x * cluster_size() + threadIdx.x] = s[threadIdx.x];
	cluster_sync();
}

// Blocks of a cluster give 32 numbers each to the one with the next rank; then y gets them.
void handed(const Args& a) {
	float* s = dynamic_shared<float>();
	Mbarrier* b = reinterpret_cast<Mbarrier*>(s + 64);
	s[threadIdx.x] = float(blockIdx.x * 100 + threadIdx.x);
	if (threadIdx.x == 0) {
		mbarrier_init(b, 1);
		mbarrier_ready();
		mbarrier_expect(b, 128);
	}
	fence_async();
	cluster_sync();
	const uint32_t next = (cluster_rank() + 1) % cluster_size();
	if (threadIdx.x == 0) bulk_copy_remote(cluster_address(s + 32 + a.wrong, next), s, 128, cluster_address(b, next));
	if (a.n != 1) mbarrier_wait(b, 0);
	a.y[blockIdx.x * 32 + threadIdx.x] = s[32 + threadIdx.x];
	cluster_sync();
}

// Blocks of a cluster arrive at a barrier of the one with the next rank, which waits for it or, if
// it is wrong, for the cluster alone.
void visits(const Args& a) {
	Mbarrier* b = dynamic_shared<Mbarrier>();
	if (threadIdx.x == 0) {
		mbarrier_init(b, 1);
		mbarrier_ready();
	}
	cluster_sync();
	if (threadIdx.x == 0) mbarrier_arrive_remote(cluster_address(b, (cluster_rank() + 1) % cluster_size()));
	cluster_reach();
	cluster_wait();
	if (!a.wrong) mbarrier_wait(b, 0);
}

// The first block of a cluster has ended when the last reaches into it: by an arrival, a store, one
// that counts, or a read.
void late(const Args& a) {
	float* s = dynamic_shared<float>();
	Mbarrier* b = reinterpret_cast<Mbarrier*>(s + 16);
	if (threadIdx.x == 0) {
		mbarrier_init(b, 2);
		mbarrier_ready();
	}
	cluster_sync();
	if (cluster_rank() + 1 < cluster_size()) return;
	for (int i = 0; i < 1000; i++) __syncthreads();
	if (threadIdx.x != 0) return;
	if (a.n == 0) mbarrier_arrive_remote(cluster_address(b, 0));
	else if (a.n == 1) store_remote(cluster_address(s, 0), 1.0f);
	else if (a.n == 2) store_async(cluster_address(s, 0), 1.0f, cluster_address(b, 0));
	else a.y[0] = load_remote(cluster_address(s, 0));
}

// All blocks of a cooperative grid wait for each other, in turns of a word.
void everyone(const Args& a) {
	uint32_t* word = reinterpret_cast<uint32_t*>(a.y);
	if (threadIdx.x == 0) {
		atomic_add(word, 1);
		while (load_acquire(word) < gridDim.x) relax();
	}
	__syncthreads();
	a.y[1 + blockIdx.x] = 1.0f;
}

template <void (*Kernel)(const Args&)>
void run(const void* a) {
	Kernel(*static_cast<const Args*>(a));
}

}  // namespace

#define ENTRY(name, function, threads, cluster)                                              \
	extern "C" __attribute__((visibility("default"))) const emulate::Entry tandem_entry_##name = { \
	    #name, run<function>, sizeof(Args), threads, cluster};

ENTRY(reduce, reduce, 256, 0)
ENTRY(reverse, reverse, 64, 0)
ENTRY(copies, copies, 64, 0)
ENTRY(misuse, misuse, 64, 0)
ENTRY(products, products, 32, 0)
ENTRY(tile, (tile<128, false, false>), 256, 0)
ENTRY(tile_across, (tile<128, true, false>), 256, 0)
ENTRY(tile_registers, (tile<64, false, true>), 256, 0)
ENTRY(registers, registers, 384, 0)
ENTRY(ranks, ranks, 64, 4)
ENTRY(handed, handed, 32, 4)
ENTRY(visits, visits, 32, 4)
ENTRY(late, late, 32, 4)
ENTRY(everyone, everyone, 64, 0)
