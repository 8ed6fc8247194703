// The manifest for people and tools. protobuf lite has no JSON of its own.
#ifndef INLAID_SDK_CHECKPOINT_RENDER_H_
#define INLAID_SDK_CHECKPOINT_RENDER_H_

#include <string>

#include "sdk/checkpoint/contents.h"

namespace inlaid::checkpoint {

// Indented JSON with the names of the .proto files; enums as lower-case words; embedded JSON texts as JSON; the tensor table
// under "tensors". Fields that this version does not know are not shown.
std::string render(const Contents& contents);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_RENDER_H_
