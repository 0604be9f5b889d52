// One line of the trace as a node or a pod. Internal to openb/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/node_writer.hpp"
#include "messages/pod_writer.hpp"
#include "ops/openb/openb.hpp"

namespace troupe::openb {

/// A pod of the trace beyond its shape.
struct PodLine {
  std::string_view name;
  OpenbPodShape shape;
  std::string_view gpu_spec;  // "A10|T4": the models that it may use; empty: any
  std::int64_t creation_ms = 0;
};

class ObjectMaker {
 public:
  explicit ObjectMaker(const OpenbOptions& options) : options_(options) {}
  Message node(std::string_view name, const OpenbNodeShape& shape);
  Message pod(const PodLine& line);

 private:
  const OpenbOptions& options_;
  NodeWriter node_writer_;
  NodeFields node_;
  PodWriter pod_writer_;
  PodFields pod_;
};

}  // namespace troupe::openb
