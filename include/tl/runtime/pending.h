// Copies that are still under way.
//
// A pending copy owns its host buffer and a pin on its device block until the device is done with
// both, so dropping everything else early is safe: its destructor waits. The pin does not count as
// an owner: a block with a download under way is not shared, and a write to it is ordered after the
// download instead.
#pragma once

#include <optional>
#include <utility>

#include "tl/runtime/host_buffer.h"
#include "tl/runtime/raw_memory.h"
#include "tl/runtime/stream.h"

namespace tl {

// The untyped part. Move-only.
class Transfer {
 public:
  // Both check nothing: sizes are the caller's business. On an exception `buffer` is untouched.
  static Transfer upload(RawMemory& to, RawHostBuffer& buffer, const Stream& stream);
  static Transfer download(const RawMemory& from, RawHostBuffer& buffer, const Stream& stream);

  Transfer(Transfer&& other) noexcept;
  Transfer& operator=(Transfer&& other) noexcept;
  ~Transfer();

  bool is_ready() const;
  RawHostBuffer wait();  // throws what the device reports, and then keeps the buffer
  // Leaves the copy to itself: the device keeps buffer and block until it is done, without making
  // anyone wait.
  void park() &&;

 private:
  friend void drain_parked(Context&) noexcept;
  Transfer() = default;
  bool in_flight() const noexcept { return done_.has_value(); }
  void finish() noexcept;

  RawHostBuffer buffer_;
  BlockPin pin_;
  std::optional<Event> done_;  // none: there was nothing to copy, or it is over
};

template <class T>
class PendingCopy {
 public:
  explicit PendingCopy(Transfer&& transfer, HostBuffer<T>&& shell)
      : transfer_(std::move(transfer)), shell_(std::move(shell)) {}

  bool is_ready() const { return transfer_.is_ready(); }
  // Waits and gives the host buffer back.
  HostBuffer<T> wait() {
    shell_.raw() = transfer_.wait();
    return std::move(shell_);
  }
  void park() && { std::move(transfer_).park(); }

 private:
  Transfer transfer_;
  HostBuffer<T> shell_;  // knows the count; its bytes are with the transfer
};

// A download: the buffer that wait() gives back holds the data.
template <class T>
using PendingRead = PendingCopy<T>;

}  // namespace tl
