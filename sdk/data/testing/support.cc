#include "sdk/data/testing/support.h"

#include <span>

namespace inlaid::data::testing {
namespace {

// GPT-2's printable stand-in for a byte: bytes that are no printable Latin-1 characters follow from U+0100
// on.
std::string stand_in(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

}  // namespace

std::shared_ptr<const text::Tokenizer> make_tokenizer(bool add_bos) {
  Json added = Json::array();
  const char* specials[] = {"<s>", "<|im_start|>", "<|im_end|>", "</s>"};
  for (int id = 0; id < 4; ++id) {
    added.push_back({{"id", id},
                     {"content", specials[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json vocab = Json::object();
  for (int id = 0; id < 4; ++id) vocab[specials[id]] = id;
  for (int id = 4; id < kByte; ++id) vocab[std::string("unused").append(std::to_string(id))] = id;
  for (int byte = 0; byte < 256; ++byte) vocab[stand_in(byte)] = kByte + byte;
  const std::string space = stand_in(' ');
  vocab["ye"] = kByte + 256;
  vocab["yes"] = kYes;
  vocab[space + "yes"] = kSpaceYes;
  const Json merges = Json::array({"y e", "ye s", space + " yes"});
  Json tokenizer = {{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", added},
                    {"normalizer", nullptr}};
  tokenizer["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", true}};
  tokenizer["post_processor"] = nullptr;
  if (add_bos) {
    const Json bos = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
    const Json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const Json b = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", Json::array({bos, a})},
        {"pair", Json::array({bos, a, b})},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", Json::array({0})}, {"tokens", Json::array({"<s>"})}}}}}};
  }
  tokenizer["decoder"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", true}};
  tokenizer["model"] = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false},
                        {"ignore_merges", false},
                        {"vocab", vocab},
                        {"merges", merges}};
  return text::Tokenizer::from_json(to_text(tokenizer), "test tokenizer");
}

std::shared_ptr<const text::ChatTemplate> make_template() {
  return text::ChatTemplate::compile(
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
      "'<|im_end|>' + '\n' }}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
      {{"eos_token", "<|im_end|>"}}, "test template");
}

std::vector<int32_t> bytes(std::string_view text) {
  std::vector<int32_t> out;
  for (const char c : text) out.push_back(kByte + static_cast<unsigned char>(c));
  return out;
}

std::vector<int32_t> join(const std::vector<std::vector<int32_t>>& parts) {
  std::vector<int32_t> out;
  for (const std::vector<int32_t>& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

void write_file(FileSystem& fs, const std::string& path, std::string_view text) {
  fs.make_folders(parent_path(path));
  const std::unique_ptr<WritableFile> file = fs.create(path);
  file->write(std::as_bytes(std::span(text)));
  file->close();
}

std::string contents(const Dataset& dataset) {
  std::string out = to_text(dataset.report().to_json()) + "\n" + dataset.identity() + "\n";
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.sample(i);
    out += std::to_string(sample.row) + ":";
    for (const int32_t token : sample.tokens) out.append(" ").append(std::to_string(token));
    out += " /";
    for (const int32_t target : sample.targets) out.append(" ").append(std::to_string(target));
    out += "\n";
  }
  return out;
}

}  // namespace inlaid::data::testing
