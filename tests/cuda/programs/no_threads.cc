// A machine on which no thread can be had, from when the program says so: preloaded.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> refuses = false;
std::atomic<int> refused = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) void refuse_threads(int on) { refuses = on != 0; }
extern "C" __attribute__((visibility("default"))) int refused_threads() { return refused; }

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
    void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto original = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!refuses) return original(thread, attributes, function, argument);
  ++refused;
  return EAGAIN;
}
