// Loads of the power log. Arguments: load, SMs and seconds of each phase. Each phase is printed as marks that profsvc
// reads: a line when it begins, a line when it ends.
#include "bench.cuh"

#include <map>
#include <string>
#include <thread>

constexpr int STEPS = 64, THREADS = 1024;
constexpr double MILLISECONDS_OF_A_LAUNCH = 5;
constexpr size_t STREAMED = (size_t)1 << 30;

// Registers begin with bits that look random: what switches decides the power.
static __device__ __forceinline__ unsigned mixed(unsigned x) {
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ (x >> 15);
}

static __device__ __forceinline__ unsigned seed() { return mixed(blockIdx.x * blockDim.x + threadIdx.x + 1); }

#define ARITHMETIC(Name, Type, TEXT, C, FIRST)                                                    \
    __global__ void __launch_bounds__(THREADS) Name(int rounds, Type a, Type b, unsigned* sink) { \
        Type x[4];                                                                                \
        for (int i = 0; i < 4; i++) {                                                             \
            unsigned s = mixed(seed() + i);                                                       \
            x[i] = FIRST;                                                                         \
        }                                                                                         \
        for (int r = 0; r < rounds; r++)                                                          \
            _Pragma("unroll") for (int s = 0; s < STEPS; s++)                                     \
                asm volatile(TEXT : "+" C(x[s % 4]) : C(a), C(b));                                \
        if (x[0] + x[1] + x[2] + x[3] == (Type)123457) sink[threadIdx.x] = 1;                     \
    }

// The fixed point of x * a + b is far from 0, and a is near -1: the bits keep changing.
ARITHMETIC(fp32, float, "fma.rn.f32 %0, %0, %1, %2;", "f", 1.f + s * 2.3283064e-10f)
ARITHMETIC(fp64, double, "fma.rn.f64 %0, %0, %1, %2;", "d", 1. + s * 2.3283064e-10)
ARITHMETIC(integer, int, "mad.lo.s32 %0, %0, %1, %2;", "r", (int)s)
ARITHMETIC(special, float, "{.reg .f32 t; rsqrt.approx.ftz.f32 t, %0; add.f32 %0, t, %1;}", "f", 1.f + s * 2.3283064e-10f)

#if ARCH >= 80
static __device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&x)[4], const unsigned (&y)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

// Two numbers in bf16, each between -2 and 2 and not tiny.
static __device__ __forceinline__ unsigned pair(unsigned s) { return (mixed(s) & 0x80ff80ff) | 0x3f003f00; }

template <int STREAM>
__global__ void __launch_bounds__(512) tensor(int rounds, const uint4* p, size_t words, unsigned* sink) {
    unsigned x[4], y[4][2];
    float c[4][4] = {};
    for (int i = 0; i < 4; i++) {
        x[i] = pair(seed() + i);
        y[i][0] = pair(seed() + 5 + i);
        y[i][1] = pair(seed() + 9 + i);
    }
    unsigned all = 0;
    size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        uint4 v{};
        if (STREAM) {
            v = __ldcs(p + at % words);
            at += gridDim.x * (size_t)blockDim.x;
        }
#pragma unroll
        for (int s = 0; s < 16; s++) multiply(c[s % 4], x, y[s % 4]);
        all ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (c[0][0] + c[1][1] + c[2][2] + c[3][3] == 123457.f || all == 123457) sink[threadIdx.x] = 1;
}
#endif

__global__ void __launch_bounds__(THREADS) shared(int rounds, unsigned* sink) {
    __shared__ uint4 words[THREADS];
    unsigned s = seed();
    words[threadIdx.x] = make_uint4(s, mixed(s + 1), mixed(s + 2), mixed(s + 3));
    __syncthreads();
    unsigned first = (unsigned)__cvta_generic_to_shared(words), own = threadIdx.x * sizeof(uint4), all = 0;
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            unsigned a, b, c, d;
            asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(first + (own ^ (i % 8 * 2048))));
            all ^= a ^ b ^ c ^ d;
        }
    if (all == 123457) sink[threadIdx.x] = 1;
}

__global__ void __launch_bounds__(THREADS) fill(uint4* p, size_t words) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (size_t)blockDim.x) {
        unsigned s = mixed((unsigned)i + 1);
        p[i] = make_uint4(s, mixed(s + 1), mixed(s + 2), mixed(s + 3));
    }
}

// Each SM reads all words, beginning at another place.
__global__ void __launch_bounds__(THREADS) stream(int rounds, const uint4* p, size_t words, unsigned* sink) {
    unsigned all = 0;
    size_t step = gridDim.x * (size_t)blockDim.x, at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        uint4 v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = __ldcg(p + (at + i * step) % words);
        at += 8 * step;
#pragma unroll
        for (int i = 0; i < 8; i++) all ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    }
    if (all == 123457) sink[threadIdx.x] = 1;
}

bool start(const std::string& load, int sms, int rounds) {
    const uint4* p = (const uint4*)device.buffer;
    size_t far = std::min(device.buffer_bytes, STREAMED) / 16, near = std::min((size_t)device.l2_bytes / 4, device.buffer_bytes) / 16;
    if (load == "fp32" || load == "light")
        fp32<<<sms, THREADS>>>(rounds, -0.9999f, 1.5f, sink);
    else if (load == "fp64")
        fp64<<<sms, THREADS>>>(rounds, -0.9999, 1.5, sink);
    else if (load == "integer")
        integer<<<sms, THREADS>>>(rounds, 1664525, 1013904223, sink);
    else if (load == "special")
        special<<<sms, THREADS>>>(rounds, 0.3f, 0.f, sink);
    else if (load == "shared")
        shared<<<sms, THREADS>>>(rounds, sink);
    else if (load == "l2")
        stream<<<sms, THREADS>>>(rounds, p, near, sink);
    else if (load == "dram")
        stream<<<sms, THREADS>>>(rounds, p, far, sink);
#if ARCH >= 80
    else if (load == "tensor")
        tensor<0><<<sms * 2, 512>>>(rounds, p, far, sink);
    else if (load == "heavy")
        tensor<1><<<sms * 2, 512>>>(rounds, p, far, sink);
#else
    else if (load == "heavy")
        stream<<<sms, THREADS>>>(rounds, p, far, sink);
#endif
    else
        return false;
    return true;
}

double unix_time() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Rounds that take as long as a launch should; the same for each repeat of a load, so that repeats do equal work.
int rounds_of(const std::string& load, int sms) {
    static std::map<std::pair<std::string, int>, int> known;
    int& found = known[{load, sms}];
    for (int rounds = 16; !found; rounds *= 2) {
        double took = seconds([&] { start(load, sms, rounds); });
        if (took * 1e3 > MILLISECONDS_OF_A_LAUNCH / 4 || rounds >= 1 << 24)
            found = std::max(1, (int)(rounds * MILLISECONDS_OF_A_LAUNCH * 1e-3 / took));
    }
    return found;
}

// A number with a point is a share of the SMs.
int sms_of(const std::string& text) {
    bool share = text.find('.') != std::string::npos;
    int sms = share ? std::max(1, (int)(device.sms * atof(text.c_str()))) : atoi(text.c_str());
    return std::min(sms, device.sms);
}

int main(int count, char** arguments) {
    open_device(0.3);
    if (device.buffer_bytes) fill<<<device.sms * 2, THREADS>>>((uint4*)device.buffer, device.buffer_bytes / 16);
    wait();
    printf("unix_s,mark,type,sms,extra\n");
    for (int i = 1; i + 2 < count; i += 3) {
        std::string load = arguments[i];
        int sms = sms_of(arguments[i + 1]);
        double lasts = atof(arguments[i + 2]);
        bool idle = load == "idle";
        if (!idle && !start(load, sms, 1)) {
            fprintf(stderr, "this device has no load %s\n", load.c_str());
            continue;
        }
        wait();
        int rounds = idle ? 0 : rounds_of(load, sms);
        printf("%.3f,begin,%s,%d\n", unix_time(), load.c_str(), sms);
        fflush(stdout);
        double end = now() + lasts;
        long long launches = 0;
        if (idle) std::this_thread::sleep_for(std::chrono::duration<double>(lasts));
        for (; !idle && now() < end; launches += 4) {
            for (int k = 0; k < 4; k++) start(load, sms, rounds);
            wait();
        }
        printf("%.3f,end,%s,%d", unix_time(), load.c_str(), sms);
        printf(idle ? "\n" : ",launches=%lld\n", launches);
        fflush(stdout);
    }
    return 0;
}
