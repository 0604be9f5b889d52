// Operations on the arithmetic of the plugins and on failure text.
#include "actors/placement/evaluate.hpp"
#include "actors/placement/failure_text.hpp"
#include "unit/placement/random_cluster.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

using testing::RowNode;

/// A node and the scored resources of a list of {requested, allocatable, weight}; `requested` counts the pod.
struct ScoringRow {
  RowNode node;
  std::vector<ScoredResource> scored;

  explicit ScoringRow(const Json& resources) {
    PodClass pod;
    ResourceId id = kFirstOtherResource;
    for (const Json& r : resources) {
      node.allocatable_amounts[id] = r.at("allocatable");
      pod.requests.push_back({id, r.at("requested")});
      scored.push_back({id, r.value("weight", 1), 0});
      ++id;
    }
    node.pods.push_back(std::move(pod));
  }
};

Json fit_score(ScoringType type, const Json& resources, const std::int32_t* ratio_score) {
  const ScoringRow row(resources);
  NodeResourcesFit::State state;
  state.scoring = type;
  state.scored = row.scored;
  state.ratio_score = ratio_score;
  return NodeResourcesFit::score(state, PodClass{}, row.node);
}

Json least(const Json& row, const Json& /*given*/) {
  return fit_score(ScoringType::least_allocated, row, nullptr);
}

Json most(const Json& row, const Json& /*given*/) {
  return fit_score(ScoringType::most_allocated, row, nullptr);
}

Json ratio(const Json& row, const Json& /*given*/) {
  std::vector<UtilizationPoint> shape;
  for (const Json& p : row.at("shape")) shape.push_back({p.at("utilization"), p.at("score")});
  const auto scores = ratio_scores(shape);
  return fit_score(ScoringType::requested_to_capacity_ratio, row.at("resources"), scores.data());
}

Json balanced(const Json& row, const Json& /*given*/) {
  const ScoringRow scoring(row);
  NodeResourcesBalancedAllocation::State state;
  state.scored = scoring.scored;
  return NodeResourcesBalancedAllocation::score(state, PodClass{}, scoring.node);
}

Json image_locality_score(const Json& row, const Json& /*given*/) {
  RowNode node;
  node.cluster_nodes = row.at("totalNodes");
  PodClass cls;
  const auto containers = row.at("containers").get<StringId>();
  for (StringId i = 0; i < containers; ++i) cls.images.push_back(i);
  StringId name = 0;
  for (const Json& image : row.at("imagesOnNode")) {
    node.image_list.push_back({name++, image.at("size"), image.at("numNodes")});
  }
  return ImageLocality::score({}, cls, node);
}

Json normalise_both(const Json& row, const Json& /*given*/) {
  auto normal = row.get<std::vector<std::int64_t>>();
  auto reversed = normal;
  normalise(Normalise::standard, normal);
  normalise(Normalise::reversed, reversed);
  return {{"normal", normal}, {"reversed", reversed}};
}

Json fit_error(const Json& row, const Json& /*given*/) {
  ReasonCounts counts;
  const std::uint64_t nodes = row.at("numAllNodes");
  for (const Json& node : row.at("nodeReasons")) {
    for (const Json& reason : node) ++counts[reason.get<std::string>()];
  }
  const std::uint64_t absent = nodes - row.at("nodeReasons").size();
  if (absent > 0) {
    for (const Json& reason : row.at("absentNodeReasons")) counts[reason.get<std::string>()] += absent;
  }
  return {{"message", failure_message(nodes, counts, row.at("preFilterMessage").get<std::string>(),
                                      row.at("postFilterMessage").get<std::string>())}};
}

Json gate_message(const Json& row, const Json& /*given*/) {
  const std::string message =
      SchedulingGates::refuse(row.at("schedulingGates").get<std::vector<std::string>>());
  if (message.empty()) return {{"code", "Success"}, {"message", ""}};
  return {{"code", "UnschedulableAndUnresolvable"}, {"message", message}};
}

Json truncate_note(const Json& row, const Json& /*given*/) {
  const std::string note = event_note(std::string(row.get<std::size_t>(), 'x'));
  const std::size_t text = note.find_last_of('x') + 1;
  return {{"length", note.size()}, {"endsWith", note.substr(text)}};
}

const bool registered[] = {
    register_op("least_allocated", least),
    register_op("most_allocated", most),
    register_op("requested_to_capacity_ratio", ratio),
    register_op("balanced_allocation", balanced),
    register_op("image_locality", image_locality_score),
    register_op("normalise", normalise_both),
    register_op("fit_error", fit_error),
    register_op("gate_message", gate_message),
    register_op("truncate_note", truncate_note),
};

}  // namespace
}  // namespace troupe::vectors
