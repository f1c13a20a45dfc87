// The edge of the C interface: no exception passes it.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "tl/base/error.h"
#include "tl/c.h"

namespace tl::capi {

// A handle that is none, or was freed.
struct BadHandle : std::runtime_error {
  using std::runtime_error::runtime_error;
};

tl_status status_of(ErrorKind kind) noexcept;
// Keeps the message for tl_last_error() and gives the status back.
tl_status fail(tl_status status, std::string_view message) noexcept;

// Runs `work`; what it throws becomes a status and the thread's last message.
template <class Work>
tl_status guarded(Work&& work) noexcept {
  try {
    work();
    return TL_OK;
  } catch (const Error& error) {
    return fail(status_of(error.kind), error.what());
  } catch (const BadHandle& error) {
    return fail(TL_BAD_HANDLE, error.what());
  } catch (const std::bad_alloc&) {
    return fail(TL_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const std::exception& error) {
    return fail(TL_INTERNAL, error.what());
  } catch (...) {
    return fail(TL_INTERNAL, "a failure of an unknown kind");
  }
}

// Throws BadArgument that names the function and its parameter when a pointer is null.
template <class T>
T* expect(T* pointer, std::string_view function, std::string_view parameter) {
  if (pointer == nullptr) throw Error(ErrorKind::BadArgument, function, parameter, " is null");
  return pointer;
}

// A copy that tl_text_free() frees.
char* new_text(std::string_view text);

}  // namespace tl::capi
