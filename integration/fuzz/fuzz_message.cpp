#include <flatbuffers/idl.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "actors/placement/pod_class.hpp"
#include "integration/fuzz/entry.hpp"
#include "messages/fb/ledger_generated.h"
#include "messages/message.hpp"

namespace troupe::fuzz {
namespace {

// All schemas, to walk a table through every field and nested table.
class Walker {
 public:
  Walker() {
    const std::array<const char*, 2> include{TROUPE_SCHEMA_DIR, nullptr};
    for (const char* name : {"commit", "common", "intent", "ledger", "node", "pod", "query"}) {
      const std::string path = std::string(TROUPE_SCHEMA_DIR "/") + name + ".fbs";
      std::ifstream in(path);
      const std::string schema{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      std::array<const char*, 2> paths = include;
      FUZZ_CHECK(!schema.empty());
      FUZZ_CHECK(parser_.Parse(schema.c_str(), paths.data(), path.c_str()));
    }
    parser_.opts.strict_json = true;
  }

  void walk(Kind kind, const std::uint8_t* bytes) {
    const std::string table = "troupe.fb." + std::string(to_string(kind));
    FUZZ_CHECK(parser_.SetRootType(table.c_str()));
    text_.clear();
    // False where a string is no UTF-8, which the schema does not promise; the fields have been read all the
    // same.
    static_cast<void>(flatbuffers::GenerateText(parser_, bytes, &text_));
  }

 private:
  flatbuffers::Parser parser_;
  std::string text_;
};

void compile_class(const fb::PodClass* wire) {
  if (wire == nullptr) return;
  Interner interner;
  const PodClass compiled = compile(*wire, interner);
  for (const ResourceRequest& r : compiled.requests) FUZZ_CHECK(r.amount > 0);
}

}  // namespace

void message(Input input) {
  static Walker walker;
  if (input.size() < 2) return;
  const auto kind = static_cast<std::uint16_t>(input[0] | input[1] << 8U);
  const auto m = Message::verified(kind, input.subspan(2));
  if (!m) return;
  walker.walk(m->kind(), m->bytes().data());
  if (m->kind() == Kind::pod && m->as<fb::Pod>().class_bytes() != nullptr) {
    compile_class(m->as<fb::Pod>().class_bytes_nested_root());
  }
}

}  // namespace troupe::fuzz
