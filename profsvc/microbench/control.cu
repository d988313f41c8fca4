// Branches and divergence, barriers, atomics, launches, the constant cache, and what departs from an SM.
#include "bench.cuh"

// ---- Control statements: a test and a jump after every 2 * RUN operations. The lanes of a warp agree, which the
// compiler cannot know.

template <int RUN>
__global__ void __launch_bounds__(1024) branches(int rounds, float a, long long* cycles,
                                                 unsigned* sink) {
    float x = threadIdx.x, y = threadIdx.x + 1;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int s = 0; s < 32; s++) {
            if (RUN && x < -1.f) asm volatile("trap;");
#pragma unroll
            for (int i = 0; i < (RUN ? RUN : 1); i++) {
                asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a));
                asm volatile("add.f32 %0, %0, %1;" : "+f"(y) : "f"(a));
            }
        }
    }
    clock.end(cycles);
    if (x + y == 123457.f) sink[threadIdx.x] = 1;
}

template <int RUN>
void branch_point() {
    constexpr int WORK = 32 * (RUN ? 2 * RUN + 1 : 2);
    int rounds = 60000 / WORK;
    // The share of the jumps among all instructions; the throughput is that of the others.
    double x = RUN ? 1.0 / (2.0 + 2.0 * RUN) : 0;
    int blocks = 1;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, branches<RUN>, 1024, 0));
    measure("control_share", x, "cycle", [=] {
        branches<RUN><<<device.sms * blocks, 1024>>>(rounds, 0.5f, cycles, sink);
        return median_cycles(device.sms * blocks) / ((double)rounds * WORK * 32 * blocks);
    });
}

// Paths that the lanes of a warp take, one after another, each with the same work.
__global__ void __launch_bounds__(1024) paths(int degree, int rounds, float a, long long* cycles, unsigned* sink) {
    float x = threadIdx.x;
    int mine = threadIdx.x % 32 % degree;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll 1
        for (int path = 0; path < degree; path++) {
            if (mine == path)
#pragma unroll
                for (int i = 0; i < 64; i++) asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a));
            __syncwarp();
        }
    }
    clock.end(cycles);
    if (x == 123457.f) sink[threadIdx.x] = 1;
}

// ---- Barriers.

__global__ void __launch_bounds__(1024) barriers(int rounds, long long* cycles) {
    BlockClock clock;
    clock.begin();
#pragma unroll 16
    for (int r = 0; r < rounds; r++) __syncthreads();
    clock.end(cycles);
}

__global__ void warp_barriers(int rounds, unsigned mask, long long* cycles) {
    BlockClock clock;
    clock.begin();
#pragma unroll 16
    for (int r = 0; r < rounds; r++) __syncwarp(mask);
    clock.end(cycles);
}

// ---- The constant of synchronization of the model of benefits: warps that load from DRAM, compute and use what they
// loaded, again and again, and meet at a barrier before each part or never. Both print the cycles of a part for each
// resident warp; their difference is what a barrier costs a warp. A part has PART instructions, one of them the load.

template <int PART, bool MEET>
__global__ void __launch_bounds__(1024) parts(const char* p, int count, float a, long long* cycles, unsigned* sink) {
    constexpr int OTHERS = 6;  // the load, where it loads from, the use of what it loaded, and the loop
    size_t block_warps = blockDim.x / 32, warp = blockIdx.x * block_warps + threadIdx.x / 32;
    size_t step = gridDim.x * block_warps * 128, at = warp * 128 + threadIdx.x % 32 * 4;
    float x = threadIdx.x, y = threadIdx.x + 1;
    BlockClock clock;
    clock.begin();
#pragma unroll 4
    for (int r = 0; r < count; r++) {
        float v;
        asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p + at));
        at += step;
#pragma unroll
        for (int i = 0; i < (PART - OTHERS) / 2; i++) {
            asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a));
            asm volatile("add.f32 %0, %0, %1;" : "+f"(y) : "f"(a));
        }
        asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(v));
        if (MEET) __syncthreads();
    }
    clock.end(cycles);
    if (x + y == 123457.f) sink[threadIdx.x] = 1;
}

template <int PART, bool MEET>
void part_points(const char* name, bool alone) {
    for (int warps : {4, 8, 16, 32}) {
        int resident = 1;
        if (!alone) CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, parts<PART, MEET>, warps * 32, 0));
        int blocks = device.sms * resident;
        if (!resident || blocks > MAX_BLOCKS) continue;
        size_t step = (size_t)blocks * warps * 128;
        int count = (int)std::min<size_t>(512, device.buffer_bytes / 2 / step) / 4 * 4;
        if (!count) continue;
        size_t turns = device.buffer_bytes / step / count, turn = 0;
        measure(name, warps, "cycle", [=]() mutable {
            size_t offset = turn++ % turns * count * step;
            parts<PART, MEET><<<blocks, warps * 32>>>(device.buffer + offset, count, 0.5f, cycles, sink);
            return most_cycles(blocks) / ((double)count * warps * resident);
        }, HALF_WIDTH / 10);  // what counts is a difference of a few percent
    }
}

template <int PART>
void barrier_costs(const char* meet, const char* free, const char* meet_alone, const char* free_alone) {
    part_points<PART, true>(meet, false);
    part_points<PART, false>(free, false);
    part_points<PART, true>(meet_alone, true);
    part_points<PART, false>(free_alone, true);
}

// ---- Atomics: device-wide rate to one address, to an address of its own for each thread; shared memory likewise.

__global__ void __launch_bounds__(1024) atomics_global(unsigned* p, unsigned spread, int rounds) {
    unsigned* mine = p + (blockIdx.x * blockDim.x + threadIdx.x) * (size_t)spread;
    for (int r = 0; r < rounds; r++) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
}

__global__ void __launch_bounds__(1024) atomics_shared(int distinct, int rounds, long long* cycles, unsigned* sink) {
    __shared__ unsigned words[1024];
    words[threadIdx.x] = 0;
    unsigned at = (unsigned)__cvta_generic_to_shared(words + (threadIdx.x % 32 % distinct) + (distinct > 1 ? threadIdx.x / 32 * 32 : 0));
    BlockClock clock;
    clock.begin();
#pragma unroll 4
    for (int r = 0; r < rounds; r++) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(rounds) : "memory");
    clock.end(cycles);
    if (words[threadIdx.x] == 0xfffffff1u) sink[0] = 1;
}

__global__ void atomic_chain(unsigned* p, int rounds, long long* cycles, bool shared) {
    __shared__ unsigned word[1];
    word[0] = 0;
    unsigned value = 0, at = (unsigned)__cvta_generic_to_shared(word);
    long long begin = clock64();
    if (shared)
        for (int r = 0; r < rounds; r++)
            asm volatile("atom.shared.exch.b32 %0, [%1], %0;" : "+r"(value) : "r"(at) : "memory");
    else
        for (int r = 0; r < rounds; r++)
            asm volatile("atom.global.exch.b32 %0, [%1], %0;" : "+r"(value) : "l"(p) : "memory");
    cycles[0] = clock64() - begin;
    if (value == 123457) p[1] = value;
}

// ---- Constant cache: a warp whose lanes ask for `degree` distinct words.

__constant__ unsigned table[16384];

template <int CHAIN>
__global__ void __launch_bounds__(1024) constants(int degree, int rounds, long long* cycles, unsigned* sink) {
    unsigned at = threadIdx.x % 32 % degree, all = 0;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 16; u++) {
            unsigned v;
            asm volatile("ld.const.u32 %0, [%1];" : "=r"(v) : "l"((size_t)__cvta_generic_to_constant(table + at + u * 32)));
            // All words are zero. Each load, or the first of a round, needs the one before.
            if (CHAIN || u == 15)
                at += v;
            else
                all |= v;
        }
    }
    clock.end(cycles);
    if (at + all == 123457) sink[0] = 1;
}

// ---- Departure: what an SM can send to memory. Each warp has eight requests under way and waits for them all; the
// cycles for each request at the largest number of warps are the delay between two departures.

constexpr int REQUESTS = 8;

template <int LANE_BYTES>
__global__ void __launch_bounds__(1024) departures(const char* p, size_t bytes, int rounds, long long* cycles, unsigned* sink) {
    size_t block_warps = blockDim.x / 32, warp = blockIdx.x * block_warps + threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t step = gridDim.x * block_warps * 32 * LANE_BYTES, at = warp * 32 * LANE_BYTES + lane * LANE_BYTES;
    unsigned all = 0;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        unsigned v[REQUESTS], sum = 0;
#pragma unroll
        for (int i = 0; i < REQUESTS; i++)
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v[i]) : "l"(p + at + i * step));
#pragma unroll
        for (int i = 0; i < REQUESTS; i++) sum |= v[i];
        all |= sum;
        at += REQUESTS * step + sum;
        if (at >= bytes) at -= bytes;
    }
    clock.end(cycles);
    if (all) sink[0] = all;
}

template <int LANE_BYTES>
void departure(const char* name, int blocks) {
    for (int warps : {1, 2, 4, 8, 16, 24, 32}) {
        size_t step = (size_t)blocks * warps * 32 * LANE_BYTES * REQUESTS;
        size_t rounds = std::min((size_t)32, std::max((size_t)4, device.buffer_bytes / 2 / step));
        size_t part = device.buffer_bytes / 2 / step * step, turn = 0;
        if (!part) continue;
        measure(name, warps, "cycle", [=]() mutable {
            // What a repeat reads must not lie in L2 from the one before: begin elsewhere each time.
            size_t offset = turn++ * rounds * step % part;
            departures<LANE_BYTES><<<blocks, warps * 32>>>(device.buffer + offset, part, (int)rounds, cycles, sink);
            return median_cycles(blocks) / (double)(rounds * REQUESTS * warps);
        });
    }
}

// The same of stores, which nothing waits for: an SM sends them until what takes them holds it up.
template <int LANE_BYTES>
__global__ void __launch_bounds__(1024) store_departures(char* p, size_t bytes, int rounds, long long* cycles) {
    size_t block_warps = blockDim.x / 32, warp = blockIdx.x * block_warps + threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t step = gridDim.x * block_warps * 32 * LANE_BYTES, at = warp * 32 * LANE_BYTES + lane * LANE_BYTES;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < REQUESTS; i++) asm volatile("st.global.u32 [%0], %1;" ::"l"(p + at + i * step), "r"(0) : "memory");
        at += REQUESTS * step;
        if (at >= bytes) at -= bytes;
    }
    clock.end(cycles);
}

template <int LANE_BYTES>
void store_departure(const char* name, int blocks, size_t most_bytes) {
    for (int warps : {8, 16, 32}) {
        size_t step = (size_t)blocks * warps * 32 * LANE_BYTES * REQUESTS;
        size_t part = std::min(device.buffer_bytes, std::max(most_bytes, step)) / step * step;
        if (!part) continue;
        int rounds = LANE_BYTES == 4 ? 256 : 32;
        measure(name, warps, "cycle", [=] {
            store_departures<LANE_BYTES><<<blocks, warps * 32>>>(device.buffer, part, rounds, cycles);
            return median_cycles(blocks) / ((double)rounds * REQUESTS * warps);
        });
    }
}

// ---- Launches.

__global__ void nothing() {}
__global__ void small_blocks(unsigned* sink) {
    if (threadIdx.x == 1000000) sink[0] = 1;
}

void launches() {
    measure("launch_and_wait", 1, "s", [] {
        double begin = now();
        for (int i = 0; i < 100; i++) {
            nothing<<<1, 32>>>();
            cudaDeviceSynchronize();
        }
        return (now() - begin) / 100;
    });
    for (int n : {10, 1000})
        measure("launch_back_to_back", n, "s", [=] {
            wait();
            double begin = now();
            for (int i = 0; i < n; i++) nothing<<<1, 32>>>();
            cudaDeviceSynchronize();
            return (now() - begin) / n;
        });
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 100; i++) nothing<<<1, 32, 0, stream>>>();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    measure("launch_in_graph", 100, "s", [=] {
        double begin = now();
        cudaGraphLaunch(ready, stream);
        cudaStreamSynchronize(stream);
        return (now() - begin) / 100;
    });
    measure("block_launch_rate", 1 << 20, "1/s", [] {
        return (1 << 20) / seconds([] { small_blocks<<<1 << 20, 32>>>(sink); });
    });
}

int main() {
    open_device(0.3);
    branch_point<0>();
    branch_point<32>();
    branch_point<16>();
    branch_point<8>();
    branch_point<4>();
    branch_point<2>();
    branch_point<1>();
    for (int degree : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
        measure("divergent_paths", degree, "cycle", [=] {
            int rounds = 400 / degree;
            paths<<<device.sms, 1024>>>(degree, rounds, 0.5f, cycles, sink);
            return median_cycles(device.sms) / ((double)rounds * 64 * 32);
        });
    for (int warps : {1, 2, 4, 8, 16, 32})
        measure("barrier", warps, "cycle", [=] {
            barriers<<<device.sms, warps * 32>>>(1024, cycles);
            return median_cycles(device.sms) / 1024;
        });
    measure("warp_barrier", 1, "cycle", [] {
        warp_barriers<<<device.sms, 32>>>(1024, 0xffffffffu, cycles);
        return median_cycles(device.sms) / 1024;
    });
    CHECK(cudaMemset(device.buffer, 0, device.buffer_bytes));
    barrier_costs<64>("meet_64", "free_64", "meet_alone_64", "free_alone_64");
    barrier_costs<128>("meet_128", "free_128", "meet_alone_128", "free_alone_128");
    barrier_costs<256>("meet_256", "free_256", "meet_alone_256", "free_alone_256");
    measure("atomic_global_latency", 1, "cycle", [] {
        atomic_chain<<<1, 1>>>(sink, 1024, cycles, false);
        return median_cycles(1) / 1024;
    });
    measure("atomic_shared_latency", 1, "cycle", [] {
        atomic_chain<<<1, 1>>>(sink, 1024, cycles, true);
        return median_cycles(1) / 1024;
    });
    for (int spread : {0, 1})
        measure(spread ? "atomic_global_spread" : "atomic_global_same", spread, "1/s", [=] {
            int rounds = spread ? 1024 : 64;
            return (double)device.sms * 1024 * rounds /
                   seconds([=] { atomics_global<<<device.sms, 1024>>>((unsigned*)device.buffer, spread, rounds); });
        });
    for (int distinct : {1, 2, 4, 8, 16, 32})
        measure("atomic_shared_distinct", distinct, "cycle", [=] {
            atomics_shared<<<device.sms, 1024>>>(distinct, 256, cycles, sink);
            return median_cycles(device.sms) / (256. * 32);
        });
    for (int degree : {1, 2, 4, 8, 16, 32}) {
        measure("constant_latency", degree, "cycle", [=] {
            constants<1><<<device.sms, 32>>>(degree, 64, cycles, sink);
            return median_cycles(device.sms) / 1024;
        });
        measure("constant_throughput", degree, "cycle", [=] {
            constants<0><<<device.sms, 1024>>>(degree, 64, cycles, sink);
            return median_cycles(device.sms) / (1024. * 32);
        });
    }
    CHECK(cudaMemset(device.buffer, 0, device.buffer_bytes));
    departure<4>("departure_coalesced_one_sm", 1);
    departure<128>("departure_uncoalesced_one_sm", 1);
    departure<4>("departure_coalesced_all_sms", device.sms);
    departure<128>("departure_uncoalesced_all_sms", device.sms);
    for (int all : {0, 1}) {
        int blocks = all ? device.sms : 1;
        store_departure<4>(all ? "departure_store_coalesced_all_sms" : "departure_store_coalesced_one_sm", blocks, device.l2_bytes / 4);
        store_departure<32>(all ? "departure_store_sector_all_sms" : "departure_store_sector_one_sm", blocks, device.l2_bytes / 4);
        store_departure<128>(all ? "departure_store_uncoalesced_all_sms" : "departure_store_uncoalesced_one_sm", blocks, device.l2_bytes / 4);
        store_departure<32>(all ? "departure_store_sector_dram_all_sms" : "departure_store_sector_dram_one_sm", blocks, device.buffer_bytes);
        store_departure<128>(all ? "departure_store_uncoalesced_dram_all_sms" : "departure_store_uncoalesced_dram_one_sm", blocks, device.buffer_bytes);
    }
    launches();
    return 0;
}
