// Latency and throughput of arithmetic: cycles per warp instruction on one SM, and how warps and independent
// operations raise the rate. Run-time operands keep the compiler from folding; the results are consumed.
#include "bench.cuh"

constexpr int STEPS = 256;

#define OPERATION(Name, Type, COUNT, TEXT, C)                                                  \
    struct Name {                                                                              \
        using T = Type;                                                                        \
        static constexpr int COUNTED = COUNT;                                                  \
        static __device__ __forceinline__ void step(T& x, T a, T b) {                          \
            asm volatile(TEXT : "+" C(x) : C(a), C(b));                                        \
        }                                                                                      \
    };

OPERATION(IntAdd, int, 2, "add.s32 %0, %0, %1; xor.b32 %0, %0, %2;", "r")
OPERATION(IntMad, int, 1, "mad.lo.s32 %0, %0, %1, %2;", "r")
OPERATION(Logic, int, 1, "lop3.b32 %0, %0, %1, %2, 0x6a;", "r")
OPERATION(Shift, int, 1, "shf.l.wrap.b32 %0, %0, %1, %2;", "r")
OPERATION(MinMax, int, 2, "{.reg .s32 t; min.s32 t, %0, %1; max.s32 %0, t, %2;}", "r")
OPERATION(PopCount, int, 1, "popc.b32 %0, %0;", "r")
OPERATION(Shuffle, int, 1, "shfl.sync.bfly.b32 %0, %0, %1, 0x1f, 0xffffffff;", "r")
OPERATION(SingleAdd, float, 1, "add.f32 %0, %0, %1;", "f")
OPERATION(SingleMul, float, 1, "mul.f32 %0, %0, %1;", "f")
OPERATION(SingleFma, float, 1, "fma.rn.f32 %0, %0, %1, %2;", "f")
OPERATION(InverseRoot, float, 1, "rsqrt.approx.ftz.f32 %0, %0;", "f")
OPERATION(Exponential, float, 1, "ex2.approx.ftz.f32 %0, %0;", "f")
OPERATION(Logarithm, float, 1, "lg2.approx.ftz.f32 %0, %0;", "f")
OPERATION(DoubleAdd, double, 1, "add.f64 %0, %0, %1;", "d")
OPERATION(DoubleMul, double, 1, "mul.f64 %0, %0, %1;", "d")
OPERATION(DoubleFma, double, 1, "fma.rn.f64 %0, %0, %1, %2;", "d")
OPERATION(HalfFma, unsigned, 1, "fma.rn.f16x2 %0, %0, %1, %2;", "r")
#if ARCH >= 80
OPERATION(BrainFma, unsigned, 1, "fma.rn.bf16x2 %0, %0, %1, %2;", "r")
#endif
OPERATION(SingleIntConversion, float, 2, "{.reg .s32 t; cvt.rzi.s32.f32 t, %0; cvt.rn.f32.s32 %0, t;}", "f")
OPERATION(SingleHalfConversion, float, 2, "{.reg .b16 t; cvt.rn.f16.f32 t, %0; cvt.f32.f16 %0, t;}", "f")
OPERATION(DoubleSingleConversion, double, 2, "{.reg .f32 t; cvt.rn.f32.f64 t, %0; cvt.f64.f32 %0, t;}", "d")
OPERATION(DoubleIntConversion, double, 2, "{.reg .s32 t; cvt.rzi.s32.f64 t, %0; cvt.rn.f64.s32 %0, t;}", "d")
OPERATION(SingleDivision, float, 1, "div.rn.f32 %0, %0, %1;", "f")
OPERATION(SingleRoot, float, 1, "sqrt.rn.f32 %0, %0;", "f")
OPERATION(IntDivision, int, 1, "{.reg .s32 t; div.s32 t, %2, %0; xor.b32 %0, t, %1;}", "r")
OPERATION(DoubleDivision, double, 1, "div.rn.f64 %0, %0, %1;", "d")

template <class Op, int ILP>
__global__ void __launch_bounds__(1024) arithmetic(long long* cycles, unsigned* sink, int rounds, typename Op::T a,
                                                   typename Op::T b) {
    using T = typename Op::T;
    T x[ILP];
    for (int i = 0; i < ILP; i++) x[i] = (T)(threadIdx.x + i) + b;
    BlockClock clock;
    clock.begin();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int s = 0; s < STEPS / Op::COUNTED / ILP; s++)
#pragma unroll
            for (int i = 0; i < ILP; i++) Op::step(x[i], a, b);
    }
    clock.end(cycles);
    T all = x[0];
    for (int i = 1; i < ILP; i++) all += x[i];
    if (all == (T)123457) sink[threadIdx.x] = (unsigned)all;
}

// Cycles per warp instruction on each SM, every SM busy.
template <class Op, int ILP>
double cycles_of(int warps, int rounds, typename Op::T a, typename Op::T b) {
    arithmetic<Op, ILP><<<device.sms, warps * 32>>>(cycles, sink, rounds, a, b);
    constexpr int COUNTED = STEPS / Op::COUNTED / ILP * ILP * Op::COUNTED;
    return median_cycles(device.sms) / ((double)rounds * COUNTED * warps);
}

template <class Op, int ILP>
void point(const char* name, double x, int warps, typename Op::T a, typename Op::T b) {
    double first = cycles_of<Op, ILP>(warps, 1, a, b) * STEPS * warps;
    int rounds = std::max(2, std::min(4000, (int)(150000 / first)));
    measure(name, x, "cycle", [=] { return cycles_of<Op, ILP>(warps, rounds, a, b); });
}

template <class Op>
void both(const char* name, typename Op::T a, typename Op::T b) {
    char text[80];
    snprintf(text, sizeof text, "%s_latency", name);
    point<Op, 1>(text, 1, 1, a, b);
    snprintf(text, sizeof text, "%s_throughput", name);
    point<Op, 2>(text, 64, 32, a, b);
    point<Op, 4>(text, 128, 32, a, b);
    point<Op, 8>(text, 256, 32, a, b);
}

template <class Op, int ILP>
void sweep_warps(const char* name, typename Op::T a, typename Op::T b) {
    for (int warps : {1, 2, 4, 8, 12, 16, 24, 32}) point<Op, ILP>(name, warps * ILP, warps, a, b);
}

template <class Op>
void sweep(const char* name, typename Op::T a, typename Op::T b) {
    char text[80];
    snprintf(text, sizeof text, "%s_load", name);
    sweep_warps<Op, 1>(text, a, b);
    sweep_warps<Op, 2>(text, a, b);
    sweep_warps<Op, 4>(text, a, b);
    sweep_warps<Op, 8>(text, a, b);
}

// SM clock while FMA keep it busy: cycles over the device's own nanosecond timer.
__global__ void clock_rate(long long* out, unsigned* sink, int rounds) {
    float x = threadIdx.x;
    long long t0, t1, c0 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
#pragma unroll 1
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int s = 0; s < STEPS; s++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
    long long c1 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
    if (threadIdx.x == 0) out[blockIdx.x] = (c1 - c0) * 1000000 / (t1 - t0);
    if (x == 123457) sink[0] = 1;
}

int main() {
    open_device();
    measure("sm_clock", 0, "Hz", [] {
        clock_rate<<<device.sms, 256>>>(cycles, sink, 4000);
        return median_cycles(device.sms) * 1000;
    });
    both<IntAdd>("integer_add", 77, 3);
    both<IntMad>("integer_mad", 77, 3);
    both<Logic>("integer_logic", 0x5a5a5a5a, 0x1234567);
    both<Shift>("integer_shift", 0x5a5a5a5a, 7);
    both<MinMax>("integer_minmax", 1 << 20, 3);
    both<PopCount>("popcount", 77, 3);
    both<Shuffle>("shuffle", 1, 3);
    both<SingleAdd>("single_add", 1.0001f, 0.5f);
    both<SingleMul>("single_mul", 0.99999f, 0.5f);
    both<SingleFma>("single_fma", 0.9999f, 0.5f);
    both<InverseRoot>("special_inverse_root", 1.f, 0.5f);
    both<Exponential>("special_exponential", 1.f, -2.5f);
    both<Logarithm>("special_logarithm", 1.f, 0.5f);
    both<DoubleAdd>("double_add", 1.0001, 0.5);
    both<DoubleMul>("double_mul", 0.99999, 0.5);
    both<DoubleFma>("double_fma", 0.9999, 0.5);
    both<HalfFma>("half_fma", 0x3c003c00u, 0x38003800u);
#if ARCH >= 80
    both<BrainFma>("brain_fma", 0x3f803f80u, 0x3f003f00u);
#endif
    both<SingleIntConversion>("conversion_single_integer", 1.f, 0.5f);
    both<SingleHalfConversion>("conversion_single_half", 1.f, 0.5f);
    both<DoubleSingleConversion>("conversion_double_single", 1., 0.5);
    both<DoubleIntConversion>("conversion_double_integer", 1., 0.5);
    both<SingleDivision>("single_division", 1.0001f, 0.5f);
    both<SingleRoot>("single_root", 1.f, 0.5f);
    both<IntDivision>("integer_division", 77, 1 << 20);
    both<DoubleDivision>("double_division", 1.0001, 0.5);
    sweep<Logic>("integer_logic", 0x5a5a5a5a, 0x1234567);
    sweep<SingleFma>("single_fma", 0.9999f, 0.5f);
    sweep<Exponential>("special_exponential", 1.f, -2.5f);
    sweep<DoubleFma>("double_fma", 0.9999, 0.5);
    return 0;
}
