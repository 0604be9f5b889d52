// ImageLocality: nodes that have the pod's images already, large and rare ones above all (spec 5.6).
#pragma once

#include "actors/placement/plugins/arithmetic.hpp"
#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct ImageLocality {
  static constexpr std::string_view name = "ImageLocality";
  static constexpr PluginId id = PluginId::image_locality;
  static constexpr Points points{Point::score};
  static constexpr ReadSet score_reads{Reads::node_facts, Reads::cluster};
  static constexpr Normalise normalise = Normalise::none;
  static constexpr std::int32_t default_weight = 1;
  using State = NoState;

  static bool skips_score(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  template <NodeView V>
  static std::int64_t score(const State& /*state*/, const PodClass& cls, const V& view) {
    const std::span<const ImageState> images = view.images();
    if (images.empty()) return 0;
    std::int64_t sum = 0;
    for (const StringId wanted : cls.images) {
      for (const ImageState& image : images) {
        if (image.name != wanted) continue;
        sum = saturating_add(sum, image_share(image.size_bytes, image.nodes_with_image, view.total_nodes()));
        break;
      }
    }
    return image_locality(sum, static_cast<std::int64_t>(cls.images.size()));
  }
};

}  // namespace troupe
