// Latency and bandwidth of DRAM, L2, L1 and shared memory; bandwidth against bytes in flight; bank conflicts.
#include "bench.cuh"

#include <numeric>
#include <random>

using Word = unsigned long long;

// ---- Latency: one thread follows pointers, each load needs the one before it.

__global__ void link_nodes(Word* base, const unsigned* next, int nodes, size_t stride_words) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < nodes; i += gridDim.x * blockDim.x)
        base[i * stride_words] = (Word)(base + next[i] * stride_words);
}

template <bool CACHED>
__global__ void chase(const Word* start, int warm, int hops, long long* cycles, unsigned* sink) {
    Word p = (Word)start;
    for (int h = 0; h < warm; h++) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory");
    p = warm ? (Word)start : p;
    long long begin = clock64();
#pragma unroll 16
    for (int h = 0; h < hops; h++) {
        if (CACHED)
            asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory");
        else
            asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p)::"memory");
    }
    cycles[0] = clock64() - begin;
    if (p == 1) sink[0] = 1;
}

__global__ void chase_shared(int hops, long long* cycles, unsigned* sink) {
    __shared__ unsigned ring[256];
    unsigned base = (unsigned)__cvta_generic_to_shared(ring);
    for (int i = 0; i < 256; i++) ring[i] = base + 4 * ((i + 33) % 256);
    unsigned p = base;
    long long begin = clock64();
#pragma unroll 16
    for (int h = 0; h < hops; h++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p)::"memory");
    cycles[0] = clock64() - begin;
    if (p == 1) sink[0] = 1;
}

// Read something else than is measured until L2 holds none of it. Reads leave nothing to be written back.
__global__ void touch(const uint4* p, size_t n, unsigned* sink) {
    unsigned all = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        all ^= __ldcg(p + i).x;
    if (all == 123457) sink[0] = all;
}

void evict() {
    size_t bytes = std::min(device.buffer_bytes / 2, (size_t)device.l2_bytes * 4);
    touch<<<device.sms * 2, 1024>>>((uint4*)(device.buffer + device.buffer_bytes - bytes), bytes / 16, sink);
}

void ring(size_t bytes, size_t stride, unsigned* scratch) {
    int nodes = (int)(bytes / stride);
    std::vector<unsigned> order(nodes), next(nodes);
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 random(12345);
    for (int i = nodes - 1; i > 0; i--) std::swap(order[i], order[random() % i]);
    for (int i = 0; i < nodes; i++) next[order[i]] = order[(i + 1) % nodes];
    CHECK(cudaMemcpy(scratch, next.data(), nodes * sizeof(unsigned), cudaMemcpyHostToDevice));
    link_nodes<<<device.sms, 256>>>((Word*)device.buffer, scratch, nodes, stride / sizeof(Word));
    wait();
}

void latencies() {
    unsigned* scratch;
    CHECK(cudaMalloc(&scratch, 64 << 20));
    measure("shared_latency", 0, "cycle", [] {
        chase_shared<<<1, 1>>>(4096, cycles, sink);
        return median_cycles(1) / 4096;
    });
    for (size_t bytes : {4u << 10, 16u << 10, 32u << 10, 64u << 10, 96u << 10, 128u << 10, 192u << 10, 256u << 10}) {
        ring(bytes, 128, scratch);
        int nodes = (int)(bytes / 128);
        measure("load_latency_l1_policy", (double)bytes, "cycle", [=] {
            chase<true><<<1, 1>>>((Word*)device.buffer, nodes, nodes, cycles, sink);
            return median_cycles(1) / nodes;
        });
    }
    for (size_t bytes = 1 << 18; bytes <= (size_t)device.l2_bytes * 2 && bytes < device.buffer_bytes / 2; bytes *= 2) {
        ring(bytes, 128, scratch);
        int hops = (int)std::min(bytes / 128, (size_t)8192);
        measure("load_latency_l2_policy", (double)bytes, "cycle", [=] {
            touch<<<device.sms, 1024>>>((uint4*)device.buffer, bytes / 16, sink);
            chase<false><<<1, 1>>>((Word*)device.buffer, 0, hops, cycles, sink);
            return median_cycles(1) / hops;
        });
    }
    for (size_t bytes = 1 << 27; bytes <= (size_t)1 << 30 && bytes <= device.buffer_bytes / 2; bytes *= 2) {
        ring(bytes, 4096, scratch);
        int hops = (int)std::min(bytes / 4096, (size_t)8192);
        measure("dram_latency", (double)bytes, "cycle", [=] {
            evict();
            chase<false><<<1, 1>>>((Word*)device.buffer, 0, hops, cycles, sink);
            return median_cycles(1) / hops;
        });
    }
    CHECK(cudaFree(scratch));
}

// A store has no result to wait for: what is measured is the store and the fence that waits for it.
template <bool SHARED>
__global__ void store_and_fence(unsigned* p, int times, long long* cycles) {
    __shared__ unsigned word[32];
    unsigned* target = SHARED ? word : p;
    long long begin = clock64();
#pragma unroll 4
    for (int i = 0; i < times; i++) {
        if (SHARED)
            asm volatile("st.shared.u32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(word)), "r"(i) : "memory");
        else
            asm volatile("st.global.u32 [%0], %1;" ::"l"(target + 32 * (i & 63)), "r"(i) : "memory");
        if (SHARED)
            __threadfence_block();
        else
            __threadfence();
    }
    cycles[0] = clock64() - begin;
    if (SHARED && word[0] == 123457u << 1) p[0] = 1;
}

void store_latencies() {
    measure("shared_store_fence_latency", 0, "cycle", [] {
        store_and_fence<true><<<1, 1>>>(sink, 1024, cycles);
        return median_cycles(1) / 1024;
    });
    measure("global_store_fence_latency", 0, "cycle", [] {
        store_and_fence<false><<<1, 1>>>(sink, 1024, cycles);
        return median_cycles(1) / 1024;
    });
}

// ---- Bandwidth of DRAM and L2.

constexpr int UNROLL = 4;

template <bool STREAM>
__global__ void __launch_bounds__(1024) read_all(const uint4* p, size_t n, int rounds, unsigned* sink) {
    uint4 all = make_uint4(0, 0, 0, 0);
    size_t step = (size_t)gridDim.x * blockDim.x, first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        for (size_t i = first; i + (UNROLL - 1) * step < n; i += UNROLL * step) {
            uint4 v[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                const uint4* at = p + i + u * step;
                if (STREAM)
                    asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                                 : "l"(at));
                else
                    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                                 : "l"(at));
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                all.x ^= v[u].x;
                all.y ^= v[u].y;
                all.z ^= v[u].z;
                all.w ^= v[u].w;
            }
        }
        first = (first + 977 * 32) % step;
    }
    if ((all.x ^ all.y ^ all.z ^ all.w) == 123457) sink[0] = 1;
}

__global__ void __launch_bounds__(1024) write_all(uint4* p, size_t n, int rounds, unsigned value) {
    size_t step = (size_t)gridDim.x * blockDim.x, first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++)
        for (size_t i = first; i < n; i += step)
            asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(p + i), "r"(value + r) : "memory");
}

__global__ void __launch_bounds__(1024) copy_all(const uint4* from, uint4* to, size_t n) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i + 3 * step < n; i += 4 * step) {
        uint4 v[4];
#pragma unroll
        for (int u = 0; u < 4; u++) v[u] = __ldcs(from + i + u * step);
#pragma unroll
        for (int u = 0; u < 4; u++) __stcs(to + i + u * step, v[u]);
    }
}

void bandwidths() {
    int blocks = device.sms * 2;
    size_t step = (size_t)blocks * 1024 * UNROLL * 16, bytes = device.buffer_bytes / step * step;
    measure("dram_read", (double)bytes, "B/s", [=] {
        return bytes / seconds([=] {
            read_all<true><<<blocks, 1024>>>((uint4*)device.buffer, bytes / 16, 1, sink);
        });
    });
    measure("dram_write", (double)bytes, "B/s", [=] {
        return bytes / seconds([=] { write_all<<<blocks, 1024>>>((uint4*)device.buffer, bytes / 16, 1, 0); });
    });
    size_t half = device.buffer_bytes / 2 / step * step;
    measure("dram_copy", 2. * half, "B/s", [=] {
        return 2 * half / seconds([=] {
            copy_all<<<blocks, 1024>>>((uint4*)device.buffer, (uint4*)(device.buffer + device.buffer_bytes / 2), half / 16);
        });
    });
    size_t part = (size_t)device.sms * 1024 * UNROLL * 16;
    for (double share : {0.15, 0.3, 0.45, 0.6}) {
        size_t n = std::max((size_t)(device.l2_bytes * share) / part, (size_t)1) * part;
        int rounds = std::max(4, (int)((size_t)(4ull << 30) / n / 4));
        measure("l2_read", (double)n, "B/s", [=] {
            return (double)n * rounds / seconds([=] {
                read_all<false><<<blocks, 512>>>((uint4*)device.buffer, n / 16, rounds, sink);
            });
        });
        measure("l2_write", (double)n, "B/s", [=] {
            return (double)n * rounds / seconds([=] {
                write_all<<<blocks, 512>>>((uint4*)device.buffer, n / 16, rounds, 0);
            });
        });
    }
}

// ---- Bandwidth against bytes in flight: each thread has U loads of 16 bytes under way, and none of the next round
// before they are all there (their sum, zero, moves the next address).

template <int U>
__global__ void __launch_bounds__(1024) flight(const uint4* p, size_t wrap, int rounds, unsigned* sink) {
    size_t step = (size_t)gridDim.x * blockDim.x, i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned all = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        uint4 v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                         : "l"(p + i + u * step));
#pragma unroll
        for (int u = 0; u < U; u++) all |= v[u].x | v[u].y | v[u].z | v[u].w;
        i += U * step + all;
        if (i >= wrap) i -= wrap;
    }
    if (all) sink[0] = all;
}

// With ``fresh`` each repeat begins where the one before ended, so that it finds nothing in L2.
template <int U>
void flights(const char* name, size_t bytes, bool fresh) {
    for (int threads : {32, 64, 128, 256, 384, 512, 768, 1024}) {
        size_t step = (size_t)device.sms * threads * 16 * U, wrap = bytes / step * step / 16;
        int rounds = (int)std::max((size_t)200, std::min((size_t)400, bytes / step));
        if (bytes < 4 * step) continue;
        size_t turns = std::max(bytes / 2 / (step * rounds), (size_t)1), turn = 0;
        if (fresh) wrap = bytes / 2 / step * step / 16;
        measure(name, (double)threads * U * 16, "B/s", [=]() mutable {
            char* start = device.buffer + (fresh ? turn++ % turns * step * rounds : 0);
            return (double)step * rounds /
                   seconds([=] { flight<U><<<device.sms, threads>>>((uint4*)start, wrap, rounds, sink); });
        });
    }
}

// ---- L1 and shared memory: cycles per SM for each line or wavefront of 128 bytes.

template <bool STORE>
__global__ void __launch_bounds__(1024) l1_lines(char* buffer, unsigned bytes, int rounds, long long* cycles,
                                                 unsigned* sink, size_t block_stride) {
    char* own = buffer + blockIdx.x * block_stride;
    unsigned all = 0, at = threadIdx.x * 16;
    for (unsigned i = at; i < bytes; i += blockDim.x * 16) all |= *(volatile unsigned*)(own + i);
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 8; u++) {
            uint4 v = make_uint4(0, 0, 0, 0);
            if (STORE)
                asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(own + at), "r"(0) : "memory");
            else
                asm volatile("ld.global.ca.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                             : "l"(own + at));
            all |= v.x | v.y | v.z | v.w;
            at = (at + blockDim.x * 16) & (bytes - 1);
        }
    }
    clock.end(cycles);
    if (all == 123457) sink[threadIdx.x] = all;
}

template <bool STORE>
void l1_point(const char* name, int blocks, int threads, unsigned bytes) {
    int rounds = 64;
    measure(name, (double)threads / 32, "cycle", [=] {
        l1_lines<STORE><<<blocks, threads>>>(device.buffer, bytes, rounds, cycles, sink, bytes);
        return median_cycles(blocks) / ((double)rounds * 8 * threads * 16 / 128);
    });
}

constexpr unsigned SHARED_BYTES = 32768;

template <bool STORE, int WORDS>
__global__ void __launch_bounds__(1024) shared_wavefronts(int degree, int rounds, long long* cycles, unsigned* sink) {
    __shared__ __align__(16) unsigned words[SHARED_BYTES / 4];
    for (int i = threadIdx.x; i < (int)SHARED_BYTES / 4; i += blockDim.x) words[i] = 0;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, all = 0;
    // Lanes i*d .. i*d + d-1 of a warp meet in bank i, each in a row of its own.
    unsigned word = WORDS == 1 ? (lane % degree) * 32 + lane / degree : lane * 4;
    unsigned at = (unsigned)__cvta_generic_to_shared(words) + 4 * word + (WORDS == 1 ? (warp % 4) * 4096 : warp * 512);
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 16; u++) {
            unsigned a = 0, b = 0, c = 0, d = 0;
            if (WORDS == 4 && STORE)
                asm volatile("st.volatile.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at + u * WORDS * 128), "r"(r) : "memory");
            else if (WORDS == 4)
                asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at + u * WORDS * 128));
            else if (STORE)
                asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at + u * WORDS * 128), "r"(r) : "memory");
            else
                asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a) : "r"(at + u * WORDS * 128));
            all |= a | b | c | d;
        }
    }
    clock.end(cycles);
    __syncthreads();
    if (all == 123457 || words[threadIdx.x] == 123457) sink[threadIdx.x] = all;
}

template <bool STORE, int WORDS>
double cycles_of_wavefront(int degree, int threads) {
    int rounds = 32;
    shared_wavefronts<STORE, WORDS><<<device.sms, threads>>>(degree, rounds, cycles, sink);
    return median_cycles(device.sms) / ((double)rounds * 16 * threads / 32 * WORDS);
}

int main() {
    open_device(0.3);
    latencies();
    store_latencies();
    CHECK(cudaMemset(device.buffer, 0, device.buffer_bytes));
    bandwidths();
    CHECK(cudaMemset(device.buffer, 0, device.buffer_bytes));
    flights<1>("dram_bytes_in_flight", device.buffer_bytes, true);
    flights<2>("dram_bytes_in_flight", device.buffer_bytes, true);
    flights<4>("dram_bytes_in_flight", device.buffer_bytes, true);
    flights<8>("dram_bytes_in_flight", device.buffer_bytes, true);
    flights<1>("l2_bytes_in_flight", device.l2_bytes * 2 / 5, false);
    flights<4>("l2_bytes_in_flight", device.l2_bytes * 2 / 5, false);
    flights<8>("l2_bytes_in_flight", device.l2_bytes * 2 / 5, false);
    for (int threads : {32, 64, 128, 256, 512, 1024}) l1_point<false>("l1_load", device.sms, threads, 16384);
    l1_point<true>("l1_store_one_sm", 1, 1024, 16384);
    l1_point<true>("l1_store_all_sms", device.sms, 1024, 16384);
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
        measure("shared_load", threads / 32, "cycle", [=] { return cycles_of_wavefront<false, 4>(1, threads); });
        measure("shared_store", threads / 32, "cycle", [=] { return cycles_of_wavefront<true, 4>(1, threads); });
    }
    for (int degree = 1; degree <= 32; degree = degree < 8 ? degree + 1 : degree + 4) {
        measure("shared_load_conflict", degree, "cycle", [=] { return cycles_of_wavefront<false, 1>(degree, 1024); });
        measure("shared_store_conflict", degree, "cycle", [=] { return cycles_of_wavefront<true, 1>(degree, 1024); });
    }
    return 0;
}
