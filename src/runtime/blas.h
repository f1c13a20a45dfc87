// The vendor's matrix products on one device: its handle, and what it has worked out for each form
// of product, kept so that a product seen before costs little more than a launch.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "runtime/driver/blas.h"
#include "tl/runtime/device.h"

namespace tl {

class Blas {
 public:
  // Null where there is no library or it cannot serve the device.
  static Blas* of(const Device& device);

  // Queues the product on the device's stream. False when the library cannot do it: nothing was
  // queued, and our own kernels have to.
  bool multiply(const Device& device, const driver::BlasForm& form,
                const driver::BlasOperands& operands);

 private:
  struct Plan {
    driver::Handle native = nullptr;  // null: the library cannot do it
    std::size_t workspace_bytes = 0;
  };
  struct Hash {
    std::size_t operator()(const driver::BlasForm& form) const noexcept;
  };

  Blas(const driver::BlasTable& table, driver::Handle native) : table_(table), native_(native) {}
  static Blas* open(const Device& device);
  const Plan& plan_for(const driver::BlasForm& form);

  const driver::BlasTable& table_;
  driver::Handle native_;
  std::mutex mutex_;
  std::unordered_map<driver::BlasForm, Plan, Hash> plans_;
};

}  // namespace tl
