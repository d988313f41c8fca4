// What every microbenchmark shares: facts of the device, cycles of a block, repeats until the median is known.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#ifndef ARCH
#error "compile with -DARCH=NN, the compute capability without its point"
#endif

#define CHECK(call) check((call), #call, __LINE__)
inline void check(cudaError_t status, const char* call, int line) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(status));
    exit(1);
}

struct Device {
    int sms, l2_bytes, clock_khz;
    size_t buffer_bytes;
    char* buffer;
};

inline Device device;

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Keep a benchmark's bound on its own time, so that a slow device still ends.
constexpr double SECONDS_OF_A_POINT = 0.25;
constexpr int MIN_REPEATS = 7, MAX_REPEATS = 41;
constexpr double HALF_WIDTH = 0.01;

// Half-width of the 95 % interval of the median over the median, from order statistics.
inline double half_width(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    int n = (int)values.size(), k = 0;
    double below = 0, probability = 1;
    for (int i = 0; i < n; i++) probability /= 2;
    for (; k < n / 2; k++) {
        below += probability;
        if (below > 0.025) break;
        probability *= (double)(n - k) / (k + 1);
    }
    k = std::max(k - 1, 0);
    double median = values[n / 2];
    return median > 0 ? (values[n - 1 - k] - values[k]) / 2 / median : 0;
}

// Print one line for each repeat of a point: name, parameter, value, unit, repeat.
inline void measure(const char* name, double x, const char* unit, const std::function<double()>& once,
                    double width = HALF_WIDTH) {
    once();
    std::vector<double> values;
    double end = now() + SECONDS_OF_A_POINT;
    while ((int)values.size() < MAX_REPEATS) {
        values.push_back(once());
        printf("%s,%.10g,%.8g,%s,%d\n", name, x, values.back(), unit, (int)values.size());
        if ((int)values.size() < MIN_REPEATS) continue;
        if (half_width(values) < width || now() > end) break;
    }
    fflush(stdout);
}

inline void wait() {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

// Seconds that the device spends on what `work` launches.
inline double seconds(const std::function<void()>& work) {
    static cudaEvent_t start = nullptr, stop = nullptr;
    if (!start) {
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
    }
    CHECK(cudaEventRecord(start));
    work();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds * 1e-3;
}

// Cycles of the blocks of the last launch: each block writes its own into `cycles`.
inline long long* cycles;
inline unsigned* sink;
constexpr int MAX_BLOCKS = 4096;

inline std::vector<long long> sorted_cycles(int blocks) {
    wait();
    std::vector<long long> all(blocks);
    CHECK(cudaMemcpy(all.data(), cycles, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
    std::sort(all.begin(), all.end());
    return all;
}

inline double median_cycles(int blocks) { return (double)sorted_cycles(blocks)[blocks / 2]; }

// An SM serves its blocks unequally, so that the median block ends before the SM does.
inline double most_cycles(int blocks) { return (double)sorted_cycles(blocks).back(); }

// Keep the device busy until its clock has risen.
static __global__ void spin(long long count) {
    for (long long end = clock64() + count; clock64() < end;) {
    }
}

inline void open_device(double share_of_memory = 0) {
    CHECK(cudaSetDevice(0));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    device.sms = properties.multiProcessorCount;
    device.l2_bytes = properties.l2CacheSize;
    CHECK(cudaDeviceGetAttribute(&device.clock_khz, cudaDevAttrClockRate, 0));
    int memory_khz = 0, driver = 0;
    CHECK(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0));
    CHECK(cudaDriverGetVersion(&driver));
    printf("# device: %s\n# compute_capability: %d.%d\n# sms: %d\n", properties.name, properties.major,
           properties.minor, device.sms);
    printf("# boost_clock_hz: %lld\n# memory_clock_hz: %lld\n# memory_bus_width_bits: %d\n# l2_size_bytes: %d\n",
           device.clock_khz * 1000LL, memory_khz * 1000LL, properties.memoryBusWidth, device.l2_bytes);
    printf("# driver: %d\n# runtime: %d\n# ecc: %d\n", driver, CUDART_VERSION, properties.ECCEnabled);
    printf("name,x,value,unit,repeat\n");
    CHECK(cudaMalloc(&cycles, MAX_BLOCKS * sizeof(long long)));
    CHECK(cudaMalloc(&sink, 1 << 20));
    CHECK(cudaMemset(sink, 0, 1 << 20));
    spin<<<device.sms, 128>>>(device.clock_khz * 300LL);
    wait();
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    device.buffer_bytes = std::min((size_t)(free * share_of_memory), (size_t)4 << 30) >> 21 << 21;
    if (!device.buffer_bytes) return;
    CHECK(cudaMalloc(&device.buffer, device.buffer_bytes));
    CHECK(cudaMemset(device.buffer, 0, device.buffer_bytes));
}

// First and last clock of a block. All of its threads call both.
struct BlockClock {
    long long start;
    __device__ void begin() {
        __syncthreads();
        start = clock64();
    }
    __device__ void end(long long* out) const {
        __shared__ long long first, last;
        long long stop = clock64();
        if (threadIdx.x == 0) {
            first = start;
            last = stop;
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            atomicMin(&first, start);
            atomicMax(&last, stop);
        }
        __syncthreads();
        if (threadIdx.x == 0) out[blockIdx.x] = last - first;
    }
};
