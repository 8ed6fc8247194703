// What an export preserves, measured on the written files: they are opened like any model and compared with what was exported.
//
// An export can go wrong in many silent ways: rows in another order, a tokenizer that lost a rule, a template that renders another
// prompt, weights that a small dtype cannot hold. So every export carries a certificate, a JSON object:
//
//   inlaid_version, format, dtype
//   logits     on a fixed text of some forty tokens: tokens, max_abs_difference, max_abs (of the exported model's own logits, for
//              scale), same_top_token (at how many positions)
//   held_out   if data is given: rows, target_tokens, loss (per target token, before), loss_exported
//   tokenizer  texts that were encoded by both, all to the same ids; null without a tokenizer
//   chat_template  conversations that were rendered by both, to the same text; null without a template
//
// Other ids or another prompt are no matter of degree: the export fails (kInternal) and leaves nothing behind. So do logits that
// are not finite.
//
// In a folder the certificate is the file inlaid_certificate.json, in a GGUF file the metadata key inlaid.certificate.
// Cost: two forward passes of the text (and of the held-out data), and the exported weights in memory as they are stored.
// Tests: certificate_test.cc, tests/capi/export_test.cc.
#ifndef INLAID_SDK_TRAIN_CERTIFICATE_H_
#define INLAID_SDK_TRAIN_CERTIFICATE_H_

#include <string>

#include "sdk/data/dataset.h"
#include "sdk/models/model.h"

namespace inlaid::train {

// Compares a written model folder or GGUF file with `model`, `adapter` (may be null) merged into it. `held_out` may be null; of
// more than some ten thousand tokens only the first are evaluated, which "rows" tells.
Json certify_model(const models::Model& model, const models::Adapter* adapter, const std::string& path, const data::Dataset* held_out);
// Compares a written PEFT folder, on its base, with the adapter in memory.
Json certify_adapter(const models::Adapter& adapter, const std::string& folder);
// The certificate of an export, by path. kNotFound if there is none.
Json read_certificate(FileSystem& files, const std::string& path);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_CERTIFICATE_H_
