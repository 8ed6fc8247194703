// Exponential, logarithm, hyperbolic tangent, logistic function and normal distribution on vectors.
//
// exp: n = round(x / ln 2), r = x - n ln 2 in two pieces, a polynomial for exp(r) on |r| <= ln 2 / 2 (Cephes,
// expf.c, S. Moshier), then a scaling by 2^n. At most 2 units in the last place over the whole range.
// exp(-inf) = 0, results that would be smaller than the least normal number (x < -87.33) are 0, so no later
// kernel meets denormals; +inf above 88.72; NaN stays NaN.
//
// tanh: a polynomial below 0.625 (Cephes, tanhf.c), so that small values keep their relative precision, and
// 1 - 2 / (exp(2|x|) + 1) above.
//
// normal: Phi(x) = erfc(-x / sqrt 2) / 2. For z >= 0, erfc(z) = exp(-z^2) t P(t) with t = 2 / (2 + z); P has
// degree 8 and was fitted to the relative error (4.2e-8) for z <= 9.4, beyond which erfc is 0 in f32. Because
// the tail is computed and not 1 - erf, Phi keeps its relative precision for negative x.
#ifndef INLAID_KERNELS_SIMD_MATH_H_
#define INLAID_KERNELS_SIMD_MATH_H_

#include "kernels/simd/simd.h"

namespace inlaid::kernels::INLAID_LEVEL {

INLAID_INLINE V exp(V x) {
  x = min(broadcast(89.0f), x);
  const V magic =
      broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits
  const V shifted = fma(x, broadcast(1.44269504088896341f), magic);
  const V n = shifted - magic;
  V r = fma(n, broadcast(-0.693359375f), x);
  r = fma(n, broadcast(2.12194440e-4f), r);
  V p = broadcast(1.9875691500e-4f);
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  p = fma(p, r * r, r) + 1.0f;
#if defined(__AVX512F__)
  const V scaled = _mm512_maskz_scalef_ps(kAll, p, n);
#else
  // In two factors, because 2^128 alone is not representable.
  const I exponent = reinterpret_cast<I>(shifted) - reinterpret_cast<I>(magic);
  const I half = exponent >> 1;
  const V scaled =
      p * reinterpret_cast<V>((half + 127) << 23) * reinterpret_cast<V>((exponent - half + 127) << 23);
#endif
  return x < -87.33654f ? V{} : scaled;
}

// Natural logarithm of x >= 0 (Cephes, logf.c): at most 2 units in the last place; log(0) = -inf. Denormals
// count as 0.
INLAID_INLINE V log(V x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const I bits = reinterpret_cast<I>(x) - 0x3F3504F3;
  const V e = __builtin_convertvector(bits >> 23, V);
  const V f = reinterpret_cast<V>((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
  V p = broadcast(7.0376836292e-2f);
  p = fma(p, f, broadcast(-1.1514610310e-1f));
  p = fma(p, f, broadcast(1.1676998740e-1f));
  p = fma(p, f, broadcast(-1.2420140846e-1f));
  p = fma(p, f, broadcast(1.4249322787e-1f));
  p = fma(p, f, broadcast(-1.6668057665e-1f));
  p = fma(p, f, broadcast(2.0000714765e-1f));
  p = fma(p, f, broadcast(-2.4999993993e-1f));
  p = fma(p, f, broadcast(3.3333331174e-1f));
  const V square = f * f;
  V y = fma(p * f, square, e * -2.12194440e-4f);
  y = fma(square, broadcast(-0.5f), y);
  y = fma(e, broadcast(0.693359375f), f + y);
  // NaN and +inf pass through the last choice.
  return x < 1.17549435e-38f ? broadcast(-__builtin_inff()) : (x <= 3.402823466e38f ? y : x);
}

// At most 2 units in the last place.
INLAID_INLINE V tanh(V x) {
  const V size = x < 0.0f ? -x : x;
  const V square = x * x;
  V p = broadcast(-5.70498872745e-3f);
  p = fma(p, square, broadcast(2.06390887954e-2f));
  p = fma(p, square, broadcast(-5.37397155531e-2f));
  p = fma(p, square, broadcast(1.33314422036e-1f));
  p = fma(p, square, broadcast(-3.33332819422e-1f));
  const V far = 1.0f - 2.0f / (exp(size + size) + 1.0f);
  return size < 0.625f ? fma(p * square, x, x) : (x < 0.0f ? -far : far);
}

// 1 / (1 + exp(-x)).
INLAID_INLINE V sigmoid(V x) {
  return 1.0f / (1.0f + exp(-x));
}

// cumulative = Phi(x), density = exp(-x^2 / 2) / sqrt(2 pi).
INLAID_INLINE void normal(V x, V& cumulative, V& density) {
  const V e = exp(x * x * -0.5f);
  const V z = (x < 0.0f ? -x : x) * 0.70710678118654752f;
  const V t = 2.0f / (2.0f + z);
  V p = broadcast(-0.05884706228971481f);
  p = fma(p, t, broadcast(0.2834874391555786f));
  p = fma(p, t, broadcast(-0.48493650555610657f));
  p = fma(p, t, broadcast(0.2754625678062439f));
  p = fma(p, t, broadcast(-0.02481929026544094f));
  p = fma(p, t, broadcast(0.20191659033298492f));
  p = fma(p, t, broadcast(0.24330021440982819f));
  p = fma(p, t, broadcast(0.28234800696372986f));
  p = fma(p, t, broadcast(0.2820879817008972f));
  const V tail = e * t * p * 0.5f;
  cumulative = x < 0.0f ? tail : 1.0f - tail;
  density = e * 0.39894228040143268f;
}

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_SIMD_MATH_H_
