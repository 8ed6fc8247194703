#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {

void rotary_table(const Context&, const RotaryTableArgs& args) {
  with_type(args.cos.dtype, [&]<typename T>(T) {
    const auto cosine = rows<T>(args.cos), sine = rows<T>(args.sin);
    const int32_t* positions = args.positions.as<int32_t>();
    const double* inv_freq = args.inv_freq.as<double>();
    for (int64_t t = 0; t < cosine.rows; ++t) {
      for (int64_t i = 0; i < cosine.columns; ++i) {
        double frequency = inv_freq[i];
        if (args.lengths && args.lengths.as<int32_t>()[t] > args.long_after) {
          if (args.long_inv_freq) {
            frequency = args.long_inv_freq.as<double>()[i];
          } else {
            const double ratio = args.lengths.as<int32_t>()[t] / static_cast<double>(args.long_after);
            const double growth = args.ntk_factor * ratio - (args.ntk_factor - 1);
            frequency *= std::pow(growth, -2.0 * static_cast<double>(i) / static_cast<double>(2 * cosine.columns - 2));
          }
        }
        const double angle = positions[t] * frequency;
        cosine[t][i] = static_cast<T>(args.scale * std::cos(angle));
        sine[t][i] = static_cast<T>(args.scale * std::sin(angle));
      }
    }
  });
}

void rotary(const Context&, const RotaryArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), cosine = rows<T>(args.cos), sine = rows<T>(args.sin);
    const int64_t half = cosine.columns, size = x.columns / args.heads;
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t h = 0; h < args.heads; ++h) {
        T* head = x[t] + h * size;
        for (int64_t i = 0; i < half; ++i) {
          const double a = head[i], b = head[i + half];
          const double c = cosine[t][i], s = args.inverse ? -double{sine[t][i]} : double{sine[t][i]};
          head[i] = static_cast<T>(a * c - b * s);
          head[i + half] = static_cast<T>(b * c + a * s);
        }
      }
    }
  });
}

}  // namespace inlaid::kernels::reference
