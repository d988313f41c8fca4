// Tensor instructions: mma.sync of each type, and on compute capability 9.0 the wgmma of a warp group, in operations
// per cycle and SM (a multiply-add is two) and in cycles from one instruction to the next that needs its result.
#include "bench.cuh"

#if ARCH >= 80
struct Half {
    using Acc = float;
    static constexpr double operations = 2.0 * 16 * 8 * 16;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};

struct Brain {
    using Acc = float;
    static constexpr double operations = 2.0 * 16 * 8 * 16;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};

struct Tf32 {
    using Acc = float;
    static constexpr double operations = 2.0 * 16 * 8 * 8;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};

struct Int8 {
    using Acc = int;
    static constexpr double operations = 2.0 * 16 * 8 * 32;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};

struct Fp64 {
    using Acc = double;
    static constexpr double operations = 2.0 * 8 * 8 * 4;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"((double)x[0]), "d"((double)y[0]));
    }
};
#if ARCH == 90 || ARCH == 100
struct Fp64Wide {
    using Acc = double;
    static constexpr double operations = 2.0 * 16 * 8 * 16;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
            "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"((double)x[0]), "d"((double)x[1]), "d"((double)x[2]), "d"((double)x[3]), "d"((double)x[4]),
              "d"((double)x[5]), "d"((double)x[6]), "d"((double)x[7]), "d"((double)y[0]), "d"((double)y[1]),
              "d"((double)y[2]), "d"((double)y[3]));
    }
};
#endif
#endif

#if ARCH >= 89
struct Fp8 {
    using Acc = float;
    static constexpr double operations = 2.0 * 16 * 8 * 32;
    static __device__ __forceinline__ void step(Acc (&c)[4], const unsigned* x, const unsigned* y) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};
#endif

#if ARCH >= 80
template <class Op, int ILP>
__global__ void __launch_bounds__(512) tensor(int rounds, unsigned seed, long long* cycles, unsigned* sink) {
    typename Op::Acc c[ILP][4] = {};
    unsigned x[8], y[8];
    for (int i = 0; i < 8; i++) {
        x[i] = seed * (threadIdx.x + i);
        y[i] = seed * (threadIdx.x + 7 * i);
    }
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int s = 0; s < 32 / ILP; s++)
#pragma unroll
            for (int i = 0; i < ILP; i++) Op::step(c[i], x, y);
    clock.end(cycles);
    double all = 0;
    for (int i = 0; i < ILP; i++)
        for (int j = 0; j < 4; j++) all += (double)c[i][j];
    if (all == 123457) sink[threadIdx.x] = 1;
}

template <class Op, int ILP>
double cycles_of(int warps, int rounds) {
    tensor<Op, ILP><<<device.sms, warps * 32>>>(rounds, 0, cycles, sink);
    return median_cycles(device.sms) / rounds;
}

template <class Op>
void both(const char* name) {
    char text[80];
    snprintf(text, sizeof text, "mma_%s_latency", name);
    measure(text, 1, "cycle", [] { return cycles_of<Op, 1>(1, 64) / 32; });
    snprintf(text, sizeof text, "mma_%s", name);
    for (int warps : {4, 8, 16})
        measure(text, warps, "op/cycle", [=] { return 32 * Op::operations * warps / cycles_of<Op, 4>(warps, 256); });
}
#endif

#if ARCH == 90
// A warp group multiplies 64 x K from shared memory by K x 256 from shared memory into its registers. The tiles are
// zero, rows of 128 bytes in the 128-byte swizzle; a step of K is 32 bytes of each row.
__device__ __forceinline__ unsigned long long tile(const void* p) {
    unsigned long long at = (unsigned long long)__cvta_generic_to_shared(p);
    return (at & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define REGISTERS                                                                                                 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define FOUR(C, c, i) C(c[i]), C(c[i + 1]), C(c[i + 2]), C(c[i + 3])
#define SIXTEEN(C, c, i) FOUR(C, c, i), FOUR(C, c, i + 4), FOUR(C, c, i + 8), FOUR(C, c, i + 12)
#define ALL(C, c)                                                                                                  \
    SIXTEEN(C, c, 0), SIXTEEN(C, c, 16), SIXTEEN(C, c, 32), SIXTEEN(C, c, 48), SIXTEEN(C, c, 64), SIXTEEN(C, c, 80), \
        SIXTEEN(C, c, 96), SIXTEEN(C, c, 112)

#define WARP_GROUP(Name, ACC, C, SHAPE, TYPES, REST, K)                                                           \
    struct Name {                                                                                                 \
        using Acc = ACC;                                                                                          \
        static constexpr double operations = 2.0 * 64 * 256 * K;                                                  \
        static __device__ __forceinline__ void step(Acc (&c)[128], unsigned long long a, unsigned long long b) {  \
            asm volatile("wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {" REGISTERS "}, %128, %129, 1" REST ";" \
                         : ALL(C, c)                                                                              \
                         : "l"(a), "l"(b));                                                                       \
        }                                                                                                         \
    };

WARP_GROUP(GroupHalf, float, "+f", "m64n256k16", "f32.f16.f16", ", 1, 1, 0, 0", 16)
WARP_GROUP(GroupBrain, float, "+f", "m64n256k16", "f32.bf16.bf16", ", 1, 1, 0, 0", 16)
WARP_GROUP(GroupTf32, float, "+f", "m64n256k8", "f32.tf32.tf32", ", 1, 1", 8)
WARP_GROUP(GroupFp8, float, "+f", "m64n256k32", "f32.e4m3.e4m3", ", 1, 1", 32)
WARP_GROUP(GroupInt8, int, "+r", "m64n256k32", "s32.s8.s8", "", 32)

constexpr int GROUP_STEPS = 16;

template <class Op>
__global__ void __launch_bounds__(256, 1) warp_group(int rounds, long long* cycles, unsigned* sink) {
    extern __shared__ unsigned char raw[];
    unsigned char* tiles = (unsigned char*)(((size_t)raw + 1023) / 1024 * 1024);
    constexpr int A = 8192, B = 32768;
    for (int i = threadIdx.x * 4; i < 2 * A + B; i += blockDim.x * 4) *(unsigned*)(tiles + i) = 0;
    typename Op::Acc c[128] = {};
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    BlockClock clock;
    clock.begin();
    unsigned long long a = tile(tiles + B + threadIdx.x / 128 * A), b = tile(tiles);
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < GROUP_STEPS; k++) Op::step(c, a + 2 * (k % 4), b + 2 * (k % 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    clock.end(cycles);
    typename Op::Acc all = 0;
    for (int i = 0; i < 128; i++) all += c[i];
    if (all == 123457) sink[threadIdx.x] = 1;
}

template <class Op>
void group(const char* name) {
    constexpr int BYTES = 2 * 8192 + 32768 + 1024;
    CHECK(cudaFuncSetAttribute(warp_group<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    for (int groups : {1, 2})
        measure(name, groups * 4, "op/cycle", [=] {
            int rounds = 64;
            warp_group<Op><<<device.sms, groups * 128, BYTES>>>(rounds, cycles, sink);
            return GROUP_STEPS * Op::operations * groups * rounds / median_cycles(device.sms);
        });
}
#endif

int main() {
    open_device();
#if ARCH >= 80
    both<Half>("fp16");
    both<Brain>("bf16");
    both<Tf32>("tf32");
    both<Int8>("int8");
    both<Fp64>("fp64");
#endif
#if ARCH == 90 || ARCH == 100
    both<Fp64Wide>("fp64_wide");
#endif
#if ARCH >= 89
    both<Fp8>("fp8");
#endif
#if ARCH == 90
    group<GroupHalf>("wgmma_fp16");
    group<GroupBrain>("wgmma_bf16");
    group<GroupTf32>("wgmma_tf32");
    group<GroupFp8>("wgmma_fp8");
    group<GroupInt8>("wgmma_int8");
#endif
    return 0;
}
