// The decoders of the mirrored kinds, and the buffers that they share. Internal to decode/.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "k8s-bridge/decode/reader.hpp"
#include "messages/message.hpp"
#include "messages/node_writer.hpp"

namespace troupe::decode {

/// Reused from object to object; texts in it view the JSON buffer of the parser.
struct Workspace {
  Reader reader;
  MetadataFields metadata;

  PodFields pod;
  RequestCalculator requests;
  struct Port {
    HostPortView port;
    bool init = false;
    std::size_t container = 0;  // index into requests.containers
  };
  std::vector<Port> ports;
  std::vector<std::string_view> app_images;
  std::vector<std::string_view> init_images;
  std::deque<std::string> owned_texts;  // what is not in the JSON as such
  PodWriter pod_writer;

  NodeFields node;
  ResourceTable node_resources;
  NodeWriter node_writer;

  flatbuffers::FlatBufferBuilder builder{512};  // of the small kinds
};

/// Decodes one object; metadata is read into the workspace too. False: the failure is in the workspace's
/// reader.
using DecodeObject = bool (*)(Workspace& w, od::object& object, Message& out);

/// The effect of a taint or toleration; empty: Any.
bool read_effect(Reader& r, od::value v, const Path& at, fb::TaintEffect& out);

bool decode_pod(Workspace& w, od::object& object, Message& out);
bool decode_node(Workspace& w, od::object& object, Message& out);
bool decode_namespace(Workspace& w, od::object& object, Message& out);
bool decode_priority_class(Workspace& w, od::object& object, Message& out);

}  // namespace troupe::decode
