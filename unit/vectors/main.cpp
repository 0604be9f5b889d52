// The runner: one test per case, named <area>.<case>.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

std::map<std::string, Operation>& operations() {
  static std::map<std::string, Operation> table;
  return table;
}

Json answer(Operation operation, const Json& row, const Json& given) {
  if (!row.is_object()) return operation(row, given);
  Json merged = given;
  merged.erase("rows");
  merged.erase("op");
  merged.update(row);  // the row's fields win
  return operation(merged, given);
}

class CaseTest : public ::testing::Test {
 public:
  explicit CaseTest(const Json* test_case) : case_(test_case) {}

  void TestBody() override {
    const Json& given = case_->at("given");
    const std::string op = given.value("op", std::string());
    const auto it = operations().find(op);
    if (it == operations().end() || !given.contains("rows")) {
      GTEST_SKIP() << case_->at("name").get<std::string>() << ": no operation \"" << op << "\" yet";
    }
    const Json& rows = given.at("rows");
    const Json& expect = case_->at("expect");
    ASSERT_EQ(rows.size(), expect.size()) << "every row needs one answer";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      try {
        const Json got = answer(it->second, rows[i], given);
        EXPECT_TRUE(got == expect[i]) << "row " << i << ' ' << rows[i].dump() << "\n  expected "
                                      << expect[i].dump() << "\n  got      " << got.dump();
      } catch (const std::exception& e) {
        ADD_FAILURE() << "row " << i << ' ' << rows[i].dump() << ": " << e.what();
      }
    }
  }

 private:
  const Json* case_;
};

/// Registers the cases of one file. False, with a word on standard error, when it cannot be used.
bool register_file(const std::filesystem::path& path, std::vector<std::unique_ptr<Json>>& keep) {
  try {
    std::ifstream in(path);
    keep.push_back(std::make_unique<Json>(Json::parse(in)));
    const Json& file = *keep.back();
    const auto area = file.at("area").get<std::string>();
    for (const Json& test_case : file.at("cases")) {
      const auto name = test_case.at("name").get<std::string>();
      const Json* pointer = &test_case;
      ::testing::RegisterTest(area.c_str(), name.c_str(), nullptr, nullptr, path.c_str(), 1,
                              [pointer]() -> CaseTest* { return new CaseTest(pointer); });
    }
    return true;
  } catch (const std::exception& e) {
    std::cerr << "vector-tests: " << path << ": " << e.what() << "; expected an object with area and cases\n";
    return false;
  }
}

}  // namespace

bool register_op(std::string name, Operation operation) {
  operations().emplace(std::move(name), operation);
  return true;
}

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* folder = std::getenv("TROUPE_VECTORS");
  const std::filesystem::path dir = folder != nullptr ? folder : TROUPE_VECTORS_DIR;
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  if (error || files.empty()) {
    std::cerr << "vector-tests: " << dir << ": " << (error ? error.message() : "no *.json file")
              << "; set TROUPE_VECTORS to a folder of vector files\n";
    return 2;
  }
  std::sort(files.begin(), files.end());
  std::vector<std::unique_ptr<Json>> keep;
  for (const auto& file : files) {
    if (!register_file(file, keep)) return 2;
  }
  return RUN_ALL_TESTS();
}

}  // namespace troupe::vectors

int main(int argc, char** argv) {
  return troupe::vectors::run(argc, argv);
}
