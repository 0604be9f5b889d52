// TLS material of one API server, read once and shared by all of its connections. Shows no OpenSSL.
#pragma once

#include <memory>

#include "k8s-bridge/http.hpp"

struct ssl_ctx_st;

namespace troupe {

class TlsMaterial {
 public:
  /// Parses the CA bundle, client certificate and key of `server`. Errors name the field and the remedy.
  static Result<std::shared_ptr<const TlsMaterial>> load(const ApiServer& server);

  TlsMaterial();
  ~TlsMaterial();
  TlsMaterial(const TlsMaterial&) = delete;
  TlsMaterial& operator=(const TlsMaterial&) = delete;

  /// Gives a context the roots, the client certificate and TLS 1.2 as its oldest version. Verification mode
  /// and host name are the caller's.
  void apply(ssl_ctx_st* context) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe
