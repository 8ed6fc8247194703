// The identity of a set of weights: a name by which an adapter or a checkpoint finds out that its base has
// changed, cheap enough for every load. sha256 over the configuration text, the sorted tensor table (name,
// type, shape) and, for every weight file in the order of their names, its size and its first and last MiB.
// Reading all bytes of a large model would take minutes; a changed tensor in the middle of a file escapes
// this identity, a re-exported or edited model does not.
#ifndef INLAID_SDK_FORMATS_IDENTITY_H_
#define INLAID_SDK_FORMATS_IDENTITY_H_

#include <string>
#include <vector>

#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

// `files`: paths of the weight files. 64 lower-case hexadecimal digits.
std::string weights_identity(FileSystem& fs, const Json& config, const std::vector<StoredTensor>& tensors,
                             std::vector<std::string> files);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_IDENTITY_H_
