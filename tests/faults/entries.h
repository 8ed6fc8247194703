// One row per function of inlaid.h that returns an error: its name, and a call with given handles.
#ifndef INLAID_TESTS_FAULTS_ENTRIES_H_
#define INLAID_TESTS_FAULTS_ENTRIES_H_

#include <inlaid.h>

#include <span>
#include <string>

namespace faults {

// All NULL, or one live handle of each type.
struct Handles {
  inlaid_runtime* runtime = nullptr;
  inlaid_config* config = nullptr;
  inlaid_tokenizer* tokenizer = nullptr;
  inlaid_decoder* decoder = nullptr;
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  inlaid_dataset* dataset = nullptr;
  inlaid_batch* batch = nullptr;
  inlaid_trainer* trainer = nullptr;
  inlaid_pass* pass = nullptr;
  inlaid_run* run = nullptr;
  inlaid_job* job = nullptr;
  inlaid_generator* generator = nullptr;
  std::string folder;  // where files may be written
};

struct Entry {
  const char* name;
  // Makes the call. What it gives out is released; the error is the caller's.
  inlaid_error* (*call)(const Handles& handles);
  bool takes_handle;  // one that belongs to a process: not so where everything comes from the arguments
};

std::span<const Entry> entries();

}  // namespace faults

#endif  // INLAID_TESTS_FAULTS_ENTRIES_H_
