#include "k8s-bridge/http/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <string>

namespace troupe {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<&BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Deleter<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<&EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<&X509_STORE_free>>;

void free_chain(STACK_OF(X509) * chain) {
  sk_X509_pop_free(chain, X509_free);
}
using Chain = std::unique_ptr<STACK_OF(X509), Deleter<&free_chain>>;

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "not PEM" : reason;
}

tl::unexpected<Error> bad(std::string field, std::string remedy) {
  return fail({ErrorCode::invalid,
               "cannot read TLS material (" + openssl_reason() + ")",
               {},
               std::move(field),
               std::move(remedy)});
}

Bio memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// An encrypted key would otherwise make OpenSSL ask on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) {
  return 0;
}

Chain read_certificates(const std::string& pem) {
  Chain chain(sk_X509_new_null());
  const Bio bio = memory(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, &no_password, nullptr)) {
    sk_X509_push(chain.get(), certificate);
  }
  // A damaged block is an error; running out of blocks is not.
  const unsigned long last = ERR_peek_last_error();
  if (last != 0 && ERR_GET_REASON(last) != PEM_R_NO_START_LINE) return nullptr;
  if (sk_X509_num(chain.get()) == 0) return nullptr;
  ERR_clear_error();
  return chain;
}

}  // namespace

struct TlsMaterial::Parts {
  Store roots;
  Certificate certificate;
  Chain intermediates;
  Key key;
};

TlsMaterial::TlsMaterial() : parts_(std::make_unique<Parts>()) {}
TlsMaterial::~TlsMaterial() = default;

Result<std::shared_ptr<const TlsMaterial>> TlsMaterial::load(const ApiServer& server) {
  ERR_clear_error();
  auto material = std::make_shared<TlsMaterial>();
  Parts& parts = *material->parts_;
  parts.roots.reset(X509_STORE_new());
  if (server.ca_pem.empty()) {
    if (!server.insecure_skip_tls_verify) X509_STORE_set_default_paths(parts.roots.get());
    ERR_clear_error();
  } else {
    const Chain roots = read_certificates(server.ca_pem);
    if (roots == nullptr) {
      return bad("certificate-authority", "give PEM certificates of the API server's CA");
    }
    for (int i = 0; i < sk_X509_num(roots.get()); ++i) {
      X509_STORE_add_cert(parts.roots.get(), sk_X509_value(roots.get(), i));
    }
    ERR_clear_error();
  }
  if (server.client_certificate_pem.empty() && server.client_key_pem.empty()) return material;

  parts.intermediates = read_certificates(server.client_certificate_pem);
  if (parts.intermediates == nullptr)
    return bad("client-certificate", "give the client's certificate as PEM");
  parts.certificate.reset(sk_X509_shift(parts.intermediates.get()));
  const Bio bio = memory(server.client_key_pem);
  parts.key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr));
  if (parts.key == nullptr)
    return bad("client-key", "give the certificate's private key as PEM, without a password");
  if (X509_check_private_key(parts.certificate.get(), parts.key.get()) != 1) {
    return bad("client-key", "use the key that belongs to the client certificate");
  }
  return material;
}

void TlsMaterial::apply(ssl_ctx_st* context) const {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set1_cert_store(context, parts_->roots.get());
  if (parts_->certificate == nullptr) return;
  SSL_CTX_use_cert_and_key(context, parts_->certificate.get(), parts_->key.get(), parts_->intermediates.get(),
                           1);
}

}  // namespace troupe
