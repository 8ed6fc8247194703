#include "sdk/formats/pre_tokenizer_table.h"

namespace inlaid::formats {
namespace {

using Splits = std::string_view[];

// Expressions that are put together of a few parts.
#define INLAID_SUFFIX R"re((?i:'s|'t|'re|'ve|'m|'ll|'d))re"
#define INLAID_WORD R"re([^\r\n\p{L}\p{N}]?\p{L}+)re"
#define INLAID_REST R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"
// Words in which a capital letter begins a new one.
#define INLAID_CASED(SUFFIX)                                                                   \
  R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re" SUFFIX \
  R"re(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re" SUFFIX
#define INLAID_CASED_REST R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"
#define INLAID_GPT2 R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))re"
#define INLAID_ASCII_MARKS R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)re"

constexpr std::string_view kLlama3 = INLAID_SUFFIX "|" INLAID_WORD R"re(|\p{N}{1,3}|)re" INLAID_REST;
constexpr std::string_view kQwen2 = INLAID_SUFFIX "|" INLAID_WORD R"re(|\p{N}|)re" INLAID_REST;
constexpr std::string_view kGpt4o = INLAID_CASED(INLAID_SUFFIX "?") R"re(|\p{N}{1,3}|)re" INLAID_CASED_REST;
constexpr std::string_view kBloom = R"re( ?[^(\s|.,!?…。，、।۔،)]+)re";
constexpr std::string_view kHan = "[一-龥\u3040-ゟ゠-ヿ]+";

constexpr Splits kGpt2Splits = {"gpt2"};
constexpr Splits kSmollmSplits = {"digits", "gpt2"};
constexpr Splits kDefaultSplits = {R"re([\p{P}\$\+<=>\^~\|]+)re", INLAID_GPT2, R"re(\p{N}+)re",
                                   "[0-9][0-9][0-9]"};
constexpr Splits kFalconSplits = {R"re([\p{P}\$\+<=>\^~\|`]+)re", INLAID_GPT2, "[0-9][0-9][0-9]"};
constexpr Splits kLlama3Splits = {kLlama3};
constexpr Splits kQwen2Splits = {kQwen2};
constexpr Splits kQwen35Splits = {
    INLAID_SUFFIX
    R"re(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Splits kMinicpm5Splits = {R"re(\p{N}{1,3})re",
                                    INLAID_SUFFIX "|" INLAID_WORD R"re(|\p{N}+|)re" INLAID_REST};
constexpr Splits kJais2Splits = {
    INLAID_SUFFIX
    "|" INLAID_WORD
    R"re(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|)re"
    R"re(\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})re"};
constexpr Splits kDeepseekLlmSplits = {"[\r\n]",
                                       "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-"
                                       "ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ"
                                       "\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-"
                                       "ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻"
                                       "𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
                                       "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+",
                                       "\\s+$",
                                       "[一-龥ࠀ-一가-\ud7ff]+",
                                       R"re(\p{N}+)re"};
constexpr Splits kDeepseekCoderSplits = {"[\r\n]", R"re(\s?\p{L}+)re", R"re(\s?\p{P}+)re",
                                         "[一-龥ࠀ-一가-\ud7ff]+", R"re(\p{N})re"};
constexpr Splits kDeepseek3Splits = {
    R"re(\p{N}{1,3})re", kHan,
    INLAID_ASCII_MARKS
    R"re(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Splits kSpark25Splits = {
    R"re(\p{N}{1,3})re", kHan,
    INLAID_ASCII_MARKS R"re(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)re",
    R"re(\p{N})re"};
constexpr Splits kYoutuSplits = {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+",
                                 INLAID_CASED(INLAID_SUFFIX "?") R"re(|\p{N}|)re" INLAID_CASED_REST};
constexpr Splits kBloomSplits = {kBloom};
constexpr Splits kVikingSplits = {kBloom, R"re(\p{N})re"};
constexpr Splits kTekkenSplits = {INLAID_CASED("") R"re(|\p{N}|)re" INLAID_CASED_REST};
constexpr Splits kChameleonSplits = {"<sentinel:[0-9]+>",           "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                                     R"re(([\t\n]|    |  ))re",     R"re(\p{N})re",
                                     R"re([\p{P}!-/:-@\[-`{-~])re", INLAID_GPT2};
constexpr Splits kGpt4oSplits = {kGpt4o};
constexpr Splits kGraniteSplits = {
    R"re([^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+)re" INLAID_SUFFIX
    R"re(?|[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*)re" INLAID_SUFFIX
    R"re(?|\p{N}{1,3}|)re" INLAID_CASED_REST};
constexpr Splits kAyaSplits = {R"re(\d{1,3}(?=(?:\d{3})*\b))re", kGpt4o};
constexpr Splits kBailingSplits = {
    R"re('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)re"};
constexpr Splits kSeedCoderSplits = {
    INLAID_SUFFIX "|" INLAID_WORD R"re(|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Splits kUfakzekaSplits = {INLAID_WORD R"re(|\p{N}|)re" INLAID_REST};
constexpr Splits kAfmoeSplits = {
    R"re(\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|\z)))re",  // groups of three counted from the end
    "[一-鿿㐀-䶿\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-⿟\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-"
    "\u109f\uaa60-\uaa7f\ua9e0-\ua9ff"
    "가-\ud7af\u1100-\u11ff]+",
    INLAID_ASCII_MARKS
    R"re(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Splits kSuperbpeSplits = {R"re(\p{N}+)re", R"re((?=(\d{3})+(?!\d)))re"};
constexpr Splits kLagunaSplits = {R"re([^\n]+|[\n]+)re", kQwen2};
constexpr Splits kExaoneMoeSplits = {
    INLAID_SUFFIX
    R"re(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)re"};

#undef INLAID_SUFFIX
#undef INLAID_WORD
#undef INLAID_REST
#undef INLAID_CASED
#undef INLAID_CASED_REST
#undef INLAID_GPT2
#undef INLAID_ASCII_MARKS

constexpr PreTokenizerRow kRows[] = {
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0 "
     "mellum "
     "modern-bert mpt olmo jais trillion granite-docling exaone4",
     kGpt2Splits},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", kSmollmSplits},
    {"default", kDefaultSplits},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", kLlama3Splits, true,
     true},
    {"qwen2", kQwen2Splits, false, false, true},
    {"stablelm2 deepseek-r1-qwen kormo f2llmv2 megrez hunyuan solar-open grok-2", kQwen2Splits},
    {"dbrx smaug-bpe chatglm-bpe", kLlama3Splits},
    {"glm4 glm5", kLlama3Splits, true},
    {"qwen35", kQwen35Splits},
    {"minicpm5", kMinicpm5Splits, true},
    {"jais-2", kJais2Splits},
    {"deepseek-llm", kDeepseekLlmSplits},
    {"deepseek-coder", kDeepseekCoderSplits},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", kDeepseek3Splits},
    {"spark2_5", kSpark25Splits},
    {"youtu", kYoutuSplits, true},
    {"falcon", kFalconSplits},
    {"bloom poro-chat gpt3-finnish", kBloomSplits},
    {"viking", kVikingSplits},
    {"tekken", kTekkenSplits, true, true},
    {"chameleon", kChameleonSplits, false, true},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", kGpt4oSplits},
    {"granite-embed-multi-97m", kGraniteSplits, true},
    {"tiny_aya cohere2moe", kAyaSplits},
    {"bailingmoe bailingmoe2 llada-moe", kBailingSplits},
    {"seed-coder", kSeedCoderSplits},
    {"ufakzeka", kUfakzekaSplits},
    {"afmoe", kAfmoeSplits},
    {"superbpe", kSuperbpeSplits},
    {"laguna", kLagunaSplits},
    {"exaone-moe", kExaoneMoeSplits},
};

constexpr RefusedPreTokenizer kRefused[] = {
    {"gemma4 granite-embed-multi-311m mmbert sarvam-moe whitespace",
     "its tokens are not in the byte alphabet"},
    {"kimi-k2", "its files list no merges"},
    {"k2-horizon", "how it splits is not published"},
};

}  // namespace

std::span<const PreTokenizerRow> pre_tokenizer_rows() {
  return kRows;
}

std::span<const RefusedPreTokenizer> refused_pre_tokenizers() {
  return kRefused;
}

}  // namespace inlaid::formats
