#include "kernels/reference.h"

#include "kernels/level.h"
#include "kernels/philox.h"

namespace inlaid::kernels::reference {

void dropout(const Context&, const DropoutArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), y = rows<T>(args.y);
    const int64_t* row_keys = args.row_keys.as<int64_t>();
    const int32_t* positions = args.positions.as<int32_t>();
    for (int64_t t = 0; t < x.rows; ++t) {
      const uint64_t key = static_cast<uint64_t>(row_keys[t]);
      for (int64_t c = 0; c < x.columns; ++c) {
        const Philox::Words words =
            Philox::generate(args.key, {static_cast<uint32_t>(c / 4), static_cast<uint32_t>(positions[t]),
                                        static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
        const bool dropped = words[static_cast<size_t>(c % 4)] < args.p * 4294967296.0;
        const double value = dropped ? 0 : x[t][c] / (1 - args.p);
        y[t][c] = static_cast<T>(args.accumulate ? y[t][c] + value : value);
      }
    }
  });
}

}  // namespace inlaid::kernels::reference
