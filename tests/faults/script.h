// A whole training script against the C API, as a careful host writes it: it creates its job or goes on with it, trains with
// evaluations and saves in two runs, uses and exports the result. Every error ends it; run again, it does what is left.
#ifndef INLAID_TESTS_FAULTS_SCRIPT_H_
#define INLAID_TESTS_FAULTS_SCRIPT_H_

#include <map>
#include <string>

#include "rig.h"

namespace faults {

struct Outcome {
  inlaid_code code = INLAID_OK;
  std::string message, details;
  // Loss and gradient norm of the steps that this call trained, all bits.
  std::map<uint64_t, std::string> steps;
  // Everything that an undisturbed script ends with: losses, tokens, bytes of checkpoint and exports.
  std::string bits;
  // What an error may not leave: bytes of any memory category that are in use when all handles but the runtime are gone.
  uint64_t memory_left = 0;
};

Outcome run_script(Rig& rig);

}  // namespace faults

#endif  // INLAID_TESTS_FAULTS_SCRIPT_H_
