#include "base/curl.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdlib>
#include <iostream>

namespace {

constexpr char kLibrary[] = "libcurl.so.4";

[[noreturn]] void Fail() {
  const char* const why = ::dlerror();
  std::cerr << "trainyard: " << kLibrary << " cannot be used: " << (why == nullptr ? "it has changed" : why)
            << "; install libcurl4" << std::endl;
  std::_Exit(1);
}

// Loaded once, and for the rest of the process: what it has started may still run at the end.
void* Library() {
  static void* const library = [] {
    void* const loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) Fail();
    return loaded;
  }();
  return library;
}

template <typename Function>
Function* Find(const char* name) {
  void* const found = ::dlsym(Library(), name);
  if (found == nullptr) Fail();
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// The function of the library with this name.
#define TY_REAL(name) static auto* const real = Find<decltype(name)>(#name)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wvarargs"  // the last parameter is an enum, as libcurl will have it
#endif
// Options are a long, a curl_off_t or a pointer: on 64 bits all of them are passed alike.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));
#define TY_THIRD(last)                     \
  va_list list;                            \
  va_start(list, last);                    \
  void* const third = va_arg(list, void*); \
  va_end(list)

extern "C" {

CURLcode curl_global_init(long flags) {
  TY_REAL(curl_global_init);
  return real(flags);
}
void curl_free(void* pointer) {
  TY_REAL(curl_free);
  real(pointer);
}
curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  TY_REAL(curl_slist_append);
  return real(list, text);
}
void curl_slist_free_all(curl_slist* list) {
  TY_REAL(curl_slist_free_all);
  real(list);
}

CURL* curl_easy_init() {
  TY_REAL(curl_easy_init);
  return real();
}
void curl_easy_cleanup(CURL* easy) {
  TY_REAL(curl_easy_cleanup);
  real(easy);
}
void curl_easy_reset(CURL* easy) {
  TY_REAL(curl_easy_reset);
  real(easy);
}
CURLcode curl_easy_pause(CURL* easy, int mask) {
  TY_REAL(curl_easy_pause);
  return real(easy, mask);
}
const char* curl_easy_strerror(CURLcode code) {
  TY_REAL(curl_easy_strerror);
  return real(code);
}
CURLcode(curl_easy_setopt)(CURL* easy, CURLoption option, ...) {
  TY_REAL(curl_easy_setopt);
  TY_THIRD(option);
  return real(easy, option, third);
}
CURLcode(curl_easy_getinfo)(CURL* easy, CURLINFO info, ...) {
  TY_REAL(curl_easy_getinfo);
  TY_THIRD(info);
  return real(easy, info, third);
}

CURLM* curl_multi_init() {
  TY_REAL(curl_multi_init);
  return real();
}
CURLMcode curl_multi_cleanup(CURLM* multi) {
  TY_REAL(curl_multi_cleanup);
  return real(multi);
}
CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  TY_REAL(curl_multi_add_handle);
  return real(multi, easy);
}
CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* easy) {
  TY_REAL(curl_multi_remove_handle);
  return real(multi, easy);
}
CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  TY_REAL(curl_multi_info_read);
  return real(multi, left);
}
CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  TY_REAL(curl_multi_perform);
  return real(multi, running);
}
CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd extra[], unsigned count, int timeout_ms, int* ready) {
  TY_REAL(curl_multi_poll);
  return real(multi, extra, count, timeout_ms, ready);
}
CURLMcode curl_multi_wakeup(CURLM* multi) {
  TY_REAL(curl_multi_wakeup);
  return real(multi);
}
CURLMcode curl_multi_socket_action(CURLM* multi, curl_socket_t socket, int events, int* running) {
  TY_REAL(curl_multi_socket_action);
  return real(multi, socket, events, running);
}
CURLMcode(curl_multi_setopt)(CURLM* multi, CURLMoption option, ...) {
  TY_REAL(curl_multi_setopt);
  TY_THIRD(option);
  return real(multi, option, third);
}
const char* curl_multi_strerror(CURLMcode code) {
  TY_REAL(curl_multi_strerror);
  return real(code);
}

CURLU* curl_url() {
  TY_REAL(curl_url);
  return real();
}
void curl_url_cleanup(CURLU* url) {
  TY_REAL(curl_url_cleanup);
  real(url);
}
CURLUcode curl_url_get(CURLU* url, CURLUPart part, char** text, unsigned flags) {
  TY_REAL(curl_url_get);
  return real(url, part, text, flags);
}
CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  TY_REAL(curl_url_set);
  return real(url, part, text, flags);
}
const char* curl_url_strerror(CURLUcode code) {
  TY_REAL(curl_url_strerror);
  return real(code);
}

}  // extern "C"
