// Offsets inside one activation region, from lifetimes.
#ifndef INLAID_SDK_AUTOGRAD_MEMORY_PLAN_H_
#define INLAID_SDK_AUTOGRAD_MEMORY_PLAN_H_

#include "sdk/autograd/program.h"

namespace inlaid::autograd {

// Fills program.offset and program.activation_bytes. A value is alive from the instruction that first writes its memory to the
// last that reads it. Values are placed in order of falling size at the lowest offset that is free during their life
// ("greedy by size", Pisarchyk and Lee, arXiv 2001.03288); quadratic in the number of values, a few thousand at most.
void plan_memory(Program& program);

}  // namespace inlaid::autograd

#endif  // INLAID_SDK_AUTOGRAD_MEMORY_PLAN_H_
