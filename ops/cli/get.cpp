#include <algorithm>
#include <iostream>

#include "ops/cli/allocation.hpp"
#include "ops/cli/commands.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string kind;
  std::string name;
  std::string ns;
  std::uint32_t limit = 0;
  std::string format = "table";
  bool watch = false;
  double interval = 2;
};

std::int64_t amount(const Json& object, const char* map, const char* key) {
  return object.contains(map) ? object[map].value(key, std::int64_t{0}) : 0;
}

std::string share(const Json& node, const char* resource) {
  return human(resource, amount(node, "requested", resource)) + "/" +
         human(resource, amount(node, "allocatable", resource));
}

std::string time_of(std::int64_t ms) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc));
}

Table nodes_table(const Json& items, bool wide) {
  Table t{{"NAME", "STATUS", "PODS", "CPU", "MEMORY"}, {}};
  if (wide) t.columns.insert(t.columns.end(), {"TAINTS", "OTHER"});
  for (const Json& n : items) {
    std::vector<std::string> row{
        n.value("name", ""), n.value("unschedulable", false) ? "unschedulable" : "schedulable",
        std::to_string(n.value("pods", 0)) + "/" + std::to_string(n.value("allowedPods", 0)), share(n, "cpu"),
        share(n, "memory")};
    if (wide) {
      std::string other;
      const Json allocatable = n.value("allocatable", Json::object());
      for (const auto& [resource, value] : allocatable.items()) {
        if (resource == "cpu" || resource == "memory") continue;
        other += (other.empty() ? "" : ", ") + resource + "=" + share(n, resource.c_str());
      }
      row.insert(row.end(), {std::to_string(n.value("taints", 0)), other});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table pods_table(const Json& items, bool) {
  Table t{{"NAMESPACE", "NAME", "STATE", "NODE"}, {}};
  for (const Json& p : items)
    t.rows.push_back(
        {p.value("namespace", ""), p.value("name", ""), p.value("state", ""), p.value("node", "")});
  return t;
}

Table pending_table(const Json& items, bool wide) {
  Table t{{"NAMESPACE", "NAME", "QUEUE", "ATTEMPTS", "WHY"}, {}};
  if (wide) t.columns = {"NAMESPACE", "NAME", "PRIORITY", "SCHEDULER", "QUEUE", "ATTEMPTS", "CREATED", "WHY"};
  for (const Json& p : items) {
    const std::string attempts = std::to_string(p.value("attempts", 0));
    if (wide) {
      t.rows.push_back({p.value("namespace", ""), p.value("name", ""), std::to_string(p.value("priority", 0)),
                        p.value("scheduler", ""), p.value("queue", ""), attempts,
                        time_of(p.value("created", std::int64_t{0})), p.value("message", "")});
    } else {
      t.rows.push_back({p.value("namespace", ""), p.value("name", ""), p.value("queue", ""), attempts,
                        p.value("message", "")});
    }
  }
  return t;
}

Table decisions_table(const Json& items, bool wide) {
  Table t{{"TIME", "NAMESPACE", "NAME", "NODE", "SCORE", "FEASIBLE"}, {}};
  if (wide) t.columns.insert(t.columns.end(), {"CLASS", "NS"});
  for (const Json& d : items) {
    std::vector<std::string> row{time_of(d.value("time", std::int64_t{0})),
                                 d.value("namespace", ""),
                                 d.value("name", ""),
                                 d.value("node", ""),
                                 std::to_string(d.value("score", 0)),
                                 std::to_string(d.value("feasibleNodes", 0))};
    if (wide)
      row.insert(row.end(), {std::to_string(d.value("class", 0)),
                             std::to_string(d.value("durationNs", std::int64_t{0}))});
    t.rows.push_back(std::move(row));
  }
  return t;
}

int once(const Context& context, const Options& o) {
  std::string path = "/api/v1/" + o.kind;
  if (o.kind == "nodes") {
    if (!o.name.empty()) path += "/" + encode_segment(o.name);
  } else if (!o.ns.empty()) {
    path += "/" + encode_segment(o.ns) + "/" + encode_segment(o.name);
  }
  if (o.limit != 0) path += "?limit=" + std::to_string(o.limit);
  auto body = get(context.server, path);
  if (!body) return complain(body.error());
  const Json document = Json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains(o.kind)) {
    return complain({ErrorCode::invalid, "the service answered something else", path, o.kind,
                     "check that versions match"});
  }
  const Format format = parse_format(o.format);
  if (format == Format::json || format == Format::yaml) {
    print_document(document, format, std::cout);
    return kOk;
  }
  const Json& items = document[o.kind];
  const bool wide = format == Format::wide;
  const Table table = o.kind == "nodes"     ? nodes_table(items, wide)
                      : o.kind == "pods"    ? pods_table(items, wide)
                      : o.kind == "pending" ? pending_table(items, wide)
                                            : decisions_table(items, wide);
  table.print(std::cout);
  return kOk;
}

}  // namespace

void add_get(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("get", "list what a running service knows: nodes, pods, pending, decisions");
  auto options = std::make_shared<Options>();
  command->add_option("kind", options->kind, "nodes, pods, pending or decisions")
      ->required()
      ->check(CLI::IsMember({"nodes", "pods", "pending", "decisions"}));
  command->add_option("name", options->name, "this node, or the decisions of this pod");
  command->add_option("-n,--namespace", options->ns, "of this namespace");
  command->add_option("--limit", options->limit, "at most so many");
  command->add_flag("-w,--watch", options->watch, "again and again, until interrupted");
  command->add_option("--interval", options->interval, "seconds between")->capture_default_str();
  add_format(*command, options->format);
  command->callback([&context, options] {
    context.run = [&context, options] {
      return repeat(options->watch, options->interval, [&] { return once(context, *options); });
    };
  });
}

void add_top(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("top", "the fullest nodes, and how full the cluster is");
  auto options = std::make_shared<Options>();
  options->limit = 20;
  command->add_option("--limit", options->limit, "so many nodes")->capture_default_str();
  command->add_flag("-w,--watch", options->watch, "again and again, until interrupted");
  command->add_option("--interval", options->interval, "seconds between")->capture_default_str();
  add_format(*command, options->format);
  command->callback([&context, options] {
    context.run = [&context, options] {
      return repeat(options->watch, options->interval, [&] {
        auto body = get(context.server, "/api/v1/nodes");
        if (!body) return complain(body.error());
        Json document = Json::parse(*body, nullptr, false);
        if (!document.is_object() || !document.contains("nodes")) {
          return complain({ErrorCode::invalid,
                           "the service answered something else",
                           "/api/v1/nodes",
                           {},
                           "check that versions match"});
        }
        Allocation total;
        std::vector<std::pair<double, Json>> nodes;
        for (const Json& n : document["nodes"]) {
          double fullest = 0;
          const Json allocatable = n.value("allocatable", Json::object());
          for (const auto& [resource, value] : allocatable.items()) {
            Amounts& a = total[resource];
            const std::int64_t requested = amount(n, "requested", resource.c_str());
            a.allocatable += value.get<std::int64_t>();
            a.requested += requested;
            if (value.get<std::int64_t>() > 0) {
              fullest = std::max(
                  fullest, static_cast<double>(requested) / static_cast<double>(value.get<std::int64_t>()));
            }
          }
          nodes.emplace_back(fullest, n);
        }
        std::stable_sort(nodes.begin(), nodes.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        if (nodes.size() > options->limit) nodes.resize(options->limit);
        Json list = Json::array();
        for (auto& [full, n] : nodes) list.push_back(std::move(n));
        const Format format = parse_format(options->format);
        if (format == Format::json || format == Format::yaml) {
          print_document({{"allocation", to_json(total)}, {"nodes", list}}, format, std::cout);
          return static_cast<int>(kOk);
        }
        Table all{{"RESOURCE", "ALLOCATABLE", "REQUESTED", ""}, {}};
        for (const auto& [resource, a] : total) {
          all.rows.push_back(
              {resource, human(resource, a.allocatable), human(resource, a.requested), percent(a)});
        }
        all.print(std::cout);
        std::cout << "\n";
        nodes_table(list, format == Format::wide).print(std::cout);
        return static_cast<int>(kOk);
      });
    };
  });
}

}  // namespace troupe::cli
