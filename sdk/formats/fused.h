// Matrices that a family stores as one and Inlaid holds apart: phi3 keeps q, k and v as qkv_proj, and gate and up as gate_up_proj,
// rows of one below the other.
//
// They are cut when a folder is opened and joined when one is written, so that nothing between knows of it. A part is read by
// reading the whole: a model is loaded once, and its largest fused matrix is a small part of it.
//
// Tests: hugging_face_test.cc, parity_test.cc (phi3).
#ifndef INLAID_SDK_FORMATS_FUSED_H_
#define INLAID_SDK_FORMATS_FUSED_H_

#include <memory>
#include <vector>

#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

// `source` with its fused matrices as parts, if the configuration is of a family that has them. kDataLoss for a fused matrix whose
// rows are not those of its parts.
std::unique_ptr<WeightSource> split_fused(std::unique_ptr<WeightSource> source, const Json& config);

// The other way: parts of phi3 joined. kInvalidArgument if one of them is missing.
std::vector<ExportTensor> join_fused(const std::vector<ExportTensor>& tensors, const Json& config);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_FUSED_H_
