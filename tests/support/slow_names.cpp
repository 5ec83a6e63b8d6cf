// Loaded into a program before the C library: the names below weir.test are looked up for a minute, and then unknown. All
// others are the system's business.
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>

#include <string_view>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  static auto* const real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || !std::string_view(node).ends_with(".weir.test")) return real(node, service, hints, out);
  ::poll(nullptr, 0, 60'000);
  return EAI_AGAIN;
}
