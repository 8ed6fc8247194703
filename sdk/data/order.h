// The order of samples: a pure function of (seed, epoch, index), for one data set or a weighted mixture of sources.
//
// A source of n samples and weight w gives m = round(w n) draws to every epoch, at least one. An epoch is a keyed permutation of
// all draws. Within a source whose weight is not 1, the draws of all epochs together run through pass after pass over its
// samples, each pass in an order of its own: draw d of epoch e is number e m + d, which is sample number (e m + d) mod n of pass
// (e m + d) div n. So with w = 0.5 every second sample is seen in one epoch and the others in the next one, with w = 2 every
// sample twice, and with any weight all samples of a source are seen equally often, up to one time. Weights of 1 cost nothing:
// then the permutation of the epoch is all there is.
#ifndef INLAID_SDK_DATA_ORDER_H_
#define INLAID_SDK_DATA_ORDER_H_

#include <cstdint>
#include <vector>

namespace inlaid::data {

// The samples [begin, end) of one source.
struct Part {
  int64_t begin = 0, end = 0;
  double weight = 1;
};

class Order {
 public:
  // Parts are not empty and follow each other from 0. kInvalidArgument when an epoch would have over 2^40 draws.
  Order(const std::vector<Part>& parts, uint64_t seed, bool shuffle);

  // Draws of an epoch.
  int64_t size() const { return size_; }
  // Whether a sample may come more than once within an epoch.
  bool repeats() const { return repeats_; }

  struct Draw {
    int64_t sample;
    int64_t pass;  // how often its source was run through before: with `sample`, the identity of the draw
  };
  // 0 <= epoch, 0 <= index < size().
  Draw at(int64_t epoch, int64_t index) const;

 private:
  struct Source {
    int64_t begin, samples;  // in the data set
    int64_t first, draws;    // in an epoch before it is permuted
  };
  std::vector<Source> sources_;
  uint64_t seed_;
  bool shuffle_;
  int64_t size_ = 0;
  bool repeats_ = false;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_ORDER_H_
