// The program around one fuzz target: replays the committed inputs, then runs mutated ones from a fixed seed.
//
//   fuzz_NAME                    the inputs of tests/fuzz/seeds/NAME, then as many mutated ones as tests/run has time for;
//                                with INLAID_TEST_FULL=1 (tests/run --full) mutated ones for 20 minutes
//   fuzz_NAME --runs N --seed N  another number of mutated inputs, from another seed; --seconds N: for that long
//   fuzz_NAME FILE...            these inputs only
//
// Run n is a function of the seed and n alone, not of the runs before it: a fault names n and prints the input in base64, and
// --seed N --only n repeats it. Crashers go to seeds/NAME once they are understood.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/check.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/mutator.h"

namespace inlaid::fuzz {
namespace {

constexpr size_t kLongest = 16384;
constexpr double kFullSeconds = 1200;

struct Options {
  uint64_t runs = INLAID_FUZZ_RUNS;
  uint64_t seed = 1;
  int64_t only = -1;
  double seconds = 0;  // 0: `runs` decides
  std::vector<std::string> files;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fault("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(read(path));
  return inputs;
}

Input current;

void run(const std::string& input, uint64_t number) {
  // A copy of exactly this size, so that a sanitizer sees a read past the end.
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), bytes.get());
  current = {input.data(), input.size(), number};
  begin_input();
  LLVMFuzzerTestOneInput(bytes.get(), input.size());
  end_input();
  current.data = nullptr;
}

Options parse(int argc, char** argv) {
  Options options;
  const char* full = std::getenv("INLAID_TEST_FULL");
  if (full != nullptr && full[0] == '1') options.seconds = kFullSeconds;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string("0"); };
    if (word == "--runs") {
      options.runs = std::stoull(value());
      options.seconds = 0;
    } else if (word == "--seed") {
      options.seed = std::stoull(value());
    } else if (word == "--only") {
      options.only = std::stoll(value());
    } else if (word == "--seconds") {
      options.seconds = std::stod(value());
    } else {
      options.files.push_back(word);
    }
  }
  return options;
}

int main_of(const Options& options) {
  install_limits(&current);
  if (!options.files.empty()) {
    for (const std::string& file : options.files) run(read(file), 0);
    return 0;
  }
  const std::filesystem::path here = INLAID_SOURCE_DIR "/tests/fuzz";
  const std::vector<std::string> corpus = read_corpus(here / "seeds" / INLAID_FUZZ_NAME);
  if (corpus.empty()) fault("no seeds for " INLAID_FUZZ_NAME);
  const std::vector<std::string> dictionary =
      read_dictionary(read(here / "dictionaries" / (std::string(INLAID_FUZZ_NAME) + ".dict")));
  const Mutator mutator(dictionary, corpus);
  const auto mutated = [&](uint64_t number) {
    std::seed_seq words{options.seed, number};
    std::mt19937_64 random(words);
    return mutator.mutate(corpus[random() % corpus.size()], random, kLongest);
  };
  if (options.only >= 0) {
    run(mutated(static_cast<uint64_t>(options.only)), static_cast<uint64_t>(options.only));
    return 0;
  }
  for (const std::string& input : corpus) run(input, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t number = 0;
  while (options.seconds > 0 ? seconds() < options.seconds : number < options.runs) {
    ++number;
    run(mutated(number), number);
  }
  std::cout << INLAID_FUZZ_NAME << ": " << corpus.size() << " inputs and " << number << " mutated ones, " << seconds() << " s\n";
  return 0;
}

}  // namespace
}  // namespace inlaid::fuzz

int main(int argc, char** argv) { return inlaid::fuzz::main_of(inlaid::fuzz::parse(argc, argv)); }
