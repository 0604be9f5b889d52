// unit/vectors/: golden vectors. `vector-tests` reads every *.json of a folder (data/, or
// TROUPE_VECTORS=DIR); each file holds cases of one operation with rows of input and the expected answers. An
// operation is one function here that puts a row through product code. Cases whose operation has no function
// are skipped, by name.
//
// To add an operation, write in the file of its area (plugins_ops.cpp, queue_ops.cpp, decode_ops.cpp, ...):
//   Json run_x(const Json& row, const Json& given) {...}
//   const bool x = register_op("x", run_x);
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace troupe::vectors {

using Json = nlohmann::json;

/// Answers one row. A row that is an object has the fields that all rows of its case share merged in; `given`
/// is the whole case, for rows that are not. May throw: the row fails with the exception's text.
using Operation = Json (*)(const Json& row, const Json& given);

/// At namespace scope, before main. Always true.
bool register_op(std::string name, Operation operation);

}  // namespace troupe::vectors
