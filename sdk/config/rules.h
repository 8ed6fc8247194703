// Rules between keys, and defaults that depend on other keys.
#ifndef INLAID_SDK_CONFIG_RULES_H_
#define INLAID_SDK_CONFIG_RULES_H_

#include "sdk/config/validate.h"

namespace inlaid::config {

// `values` holds what the document sets. Contradictions are refused naming both keys; defaults that depend on
// other keys are added; a key that another one replaces (train.micro_batch_tokens beside
// train.micro_batch_size) is set to null, so that the canonical document is accepted again and means the
// same.
void apply_rules(Values* values);

}  // namespace inlaid::config

#endif  // INLAID_SDK_CONFIG_RULES_H_
