#include <array>

#include "ops/openb/openb.hpp"

namespace troupe {
namespace {

#include "ops/openb/shapes.inc"

}  // namespace

std::span<const OpenbNodeShape> openb_node_shapes() {
  return kNodeShapes;
}

std::span<const OpenbPodShape> openb_pod_shapes() {
  return kPodShapes;
}

}  // namespace troupe
