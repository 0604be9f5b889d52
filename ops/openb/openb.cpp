#include "ops/openb/openb.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "ops/openb/objects.hpp"

namespace troupe {
namespace {

// Bounds of what a line may say, so that no product or sum of them leaves 64 bits.
constexpr std::int64_t kMostAmount = std::int64_t{1} << 36;
constexpr std::size_t kMostLineBytes = 64 * 1024;
constexpr std::size_t kMostLines = 10'000'000;
constexpr std::int64_t kTableStartMs =
    1'672'531'200'000;  // 2023-01-01: pods of the table come a second apart

// SplitMix64: the same numbers everywhere, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return (z ^ (z >> 31U)) % n;
  }

 private:
  std::uint64_t state_;
};

// Every shape as often as it counts, in an order that the random numbers give.
template <class Shape>
std::vector<const Shape*> shuffled(std::span<const Shape> shapes, Random& random) {
  std::vector<const Shape*> out;
  for (const Shape& s : shapes) out.insert(out.end(), s.count, &s);
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

std::string numbered(const char* prefix, std::size_t i) {
  std::array<char, 48> buffer{};
  const int n = std::snprintf(buffer.data(), buffer.size(), "%s%04zu", prefix, i);
  return {buffer.data(), static_cast<std::size_t>(n)};
}

void table_nodes(openb::ObjectMaker& make, Random& random, OpenbWorkload& out) {
  std::size_t i = 0;
  for (const OpenbNodeShape* s : shuffled(openb_node_shapes(), random)) {
    out.nodes.push_back(make.node(numbered("openb-node-", i++), *s));
    out.gpus += s->gpus;
  }
}

void table_pods(openb::ObjectMaker& make, Random& random, OpenbWorkload& out) {
  std::size_t i = 0;
  for (const OpenbPodShape* s : shuffled(openb_pod_shapes(), random)) {
    const std::string name = numbered("openb-pod-", i);
    const auto second = static_cast<std::int64_t>(i);
    out.pods.push_back(make.pod({name, *s, {}, kTableStartMs + second * 1000}));
    ++i;
  }
}

// One file of the trace: the header says which columns there are.
class CsvFile {
 public:
  CsvFile(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

  Result<void> header() {
    if (!next_line()) return error("an empty file", {}, "name a node list or pod list of the trace");
    for (const std::string_view column : cells_) columns_.emplace_back(column);
    return {};
  }
  [[nodiscard]] bool has(std::string_view column) const { return index(column).has_value(); }

  /// The next line with anything on it; false at the end of the file or where it cannot be read (see
  /// failure()).
  bool next() {
    while (next_line()) {
      if (!(cells_.size() == 1 && cells_[0].empty())) return true;
    }
    return false;
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  /// Empty where the file has no such column.
  [[nodiscard]] std::string_view text(std::string_view column) const {
    const auto i = index(column);
    return i && *i < cells_.size() ? cells_[*i] : std::string_view{};
  }

  Result<std::int64_t> number(std::string_view column) const {
    const std::string_view cell = text(column);
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (cell.empty() || code != std::errc{} || end != cell.data() + cell.size() || value < 0 ||
        value > kMostAmount) {
      return error("\"" + std::string(cell.substr(0, 64)) + "\" is no number of 0 or more", column,
                   "correct the line");
    }
    return value;
  }

  tl::unexpected<Error> error(std::string what, std::string_view column, std::string remedy) const {
    std::string field = "line " + std::to_string(line_number_);
    if (!column.empty()) field.append(", column ").append(column);
    return fail({ErrorCode::invalid, std::move(what), name_, std::move(field), std::move(remedy)});
  }

 private:
  std::istream& in_;
  std::string name_;
  std::vector<std::string> columns_;
  std::string line_;
  std::vector<std::string_view> cells_;
  std::size_t line_number_ = 0;
  std::optional<Error> failure_;

  [[nodiscard]] std::optional<std::size_t> index(std::string_view column) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == column) return i;
    }
    return std::nullopt;
  }

  // A line is read byte by byte into a bounded buffer: a file without newlines is no reason to fill the
  // memory.
  bool read_bounded_line() {
    line_.clear();
    std::streambuf* const buffer = in_.rdbuf();
    for (int c = buffer->sbumpc(); c != std::char_traits<char>::eof(); c = buffer->sbumpc()) {
      if (c == '\n') return true;
      if (line_.size() == kMostLineBytes) {
        failure_ = error("a line of more than " + std::to_string(kMostLineBytes) + " bytes", {},
                         "name a CSV file of the trace")
                       .value();
        return false;
      }
      line_.push_back(static_cast<char>(c));
    }
    return !line_.empty();
  }

  bool next_line() {
    if (failure_) return false;
    ++line_number_;
    if (line_number_ > kMostLines) {
      failure_ = error("more than " + std::to_string(kMostLines) + " lines", {}, "split the file").value();
      return false;
    }
    if (!read_bounded_line()) return false;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    cells_.clear();
    std::string_view rest = line_;
    for (std::size_t comma = rest.find(','); comma != std::string_view::npos; comma = rest.find(',')) {
      cells_.push_back(rest.substr(0, comma));
      rest.remove_prefix(comma + 1);
    }
    cells_.push_back(rest);
    return true;
  }
};

// Numbers of one line, the first that is wrong kept.
class Line {
 public:
  explicit Line(const CsvFile& file) : file_(file) {}
  std::int64_t number(std::string_view column) {
    const auto n = file_.number(column);
    if (!n && !error_) error_ = n.error();
    return n.value_or(0);
  }
  [[nodiscard]] std::optional<Error>& error() { return error_; }

 private:
  const CsvFile& file_;
  std::optional<Error> error_;
};

Result<void> read_nodes(CsvFile& file, openb::ObjectMaker& make, OpenbWorkload& out) {
  while (file.next()) {
    Line line(file);
    OpenbNodeShape shape;
    shape.cpu_milli = line.number("cpu_milli");
    shape.memory_mib = line.number("memory_mib");
    shape.gpus = line.number("gpu");
    shape.model = file.text("model");
    if (line.error()) return fail(std::move(*line.error()));
    if (file.text("sn").empty()) return file.error("missing", "sn", "give each node a name");
    out.nodes.push_back(make.node(file.text("sn"), shape));
    out.gpus += shape.gpus;
  }
  return {};
}

Result<void> read_pods(CsvFile& file, openb::ObjectMaker& make, OpenbWorkload& out) {
  const bool has_creation = file.has("creation_time");
  while (file.next()) {
    Line line(file);
    openb::PodLine pod;
    pod.name = file.text("name");
    pod.shape.cpu_milli = line.number("cpu_milli");
    pod.shape.memory_mib = line.number("memory_mib");
    pod.shape.gpus = line.number("num_gpu");
    pod.shape.gpu_milli = line.number("gpu_milli");
    pod.shape.qos = file.text("qos");
    pod.gpu_spec = file.text("gpu_spec");
    if (has_creation) pod.creation_ms = line.number("creation_time") * 1000;  // seconds since the trace began
    if (line.error()) return fail(std::move(*line.error()));
    if (pod.name.empty()) return file.error("missing", "name", "give each pod a name");
    out.pods.push_back(make.pod(pod));
  }
  return {};
}

}  // namespace

OpenbWorkload openb_workload(const OpenbOptions& options) {
  OpenbWorkload out;
  openb::ObjectMaker make(options);
  Random random(options.seed);
  table_nodes(make, random, out);
  table_pods(make, random, out);
  return out;
}

Result<OpenbWorkload> read_openb(std::span<const std::string> files, const OpenbOptions& options) {
  OpenbWorkload out;
  openb::ObjectMaker make(options);
  bool has_nodes = false;
  bool has_pods = false;
  for (const std::string& path : files) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      const int why = errno;
      return fail({why == EACCES ? ErrorCode::permission : ErrorCode::not_found,
                   std::string("cannot be opened: ") + std::strerror(why),
                   path,
                   {},
                   "check the path"});
    }
    CsvFile file(in, path);
    Result<void> r = file.header();
    if (!r && !file.failure()) return fail(std::move(r.error()));
    if (file.failure()) return fail(*file.failure());
    const bool sizes = file.has("cpu_milli") && file.has("memory_mib");
    if (sizes && file.has("sn") && file.has("gpu")) {
      has_nodes = true;
      r = read_nodes(file, make, out);
    } else if (sizes && file.has("name") && file.has("num_gpu") && file.has("gpu_milli")) {
      has_pods = true;
      r = read_pods(file, make, out);
    } else {
      return file.error("neither a node list nor a pod list", {},
                        "its first line must name the columns sn,cpu_milli,memory_mib,gpu,model or "
                        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,...");
    }
    if (!r) return fail(std::move(r.error()));
    if (file.failure()) return fail(*file.failure());
  }
  Random random(options.seed);
  if (!has_nodes) table_nodes(make, random, out);
  if (!has_pods) table_pods(make, random, out);
  return out;
}

}  // namespace troupe
