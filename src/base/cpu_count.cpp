#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>

namespace tl {

namespace {

// CPU sets have no fixed size: a kernel built for more CPUs than the set holds refuses it, so it
// grows until it fits.
int affinity_count() {
  struct Free {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
  };
  for (std::size_t cpus = 1024; cpus <= std::size_t{1} << 20; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(cpus));
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Whole CPUs for `quota` microseconds of every `period`; 0 means no limit.
int whole_cpus(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;
  const double cpus = quota / period;
  if (cpus >= std::numeric_limits<int>::max()) return 0;
  const int whole = static_cast<int>(cpus);
  return whole < cpus ? whole + 1 : whole;
}

// Version 2 keeps "QUOTA PERIOD" in one file, where QUOTA may be the word "max".
int limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0;
  double period = 0;
  return file >> quota >> period ? whole_cpus(quota, period) : 0;
}

// Version 1 keeps two files; a quota of -1 means none.
int limit_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  return quota_file >> quota && period_file >> period ? whole_cpus(quota, period) : 0;
}

bool has_controller(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == controller) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// The smallest limit from the process's own group up to the top: a quota binds everything below it.
// Inside a container the group's path may not exist under the mount; then only the folders that are
// there count.
template <class Limit>
int smallest_limit(const std::string& mount, std::string group, Limit limit) {
  int smallest = 0;
  for (;;) {
    const int here = limit(mount + group);
    if (here > 0) smallest = smallest == 0 ? here : std::min(smallest, here);
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return smallest;
    group.resize(slash);
  }
}

}  // namespace

int cgroup_cpu_limit(const std::string& membership, const std::string& mount) {
  std::ifstream file(membership);
  int smallest = 0;
  // Each line is "hierarchy:controllers:/path"; version 2 has no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    int limit = 0;
    if (controllers.empty()) {
      limit = smallest_limit(mount, group, limit_v2);
    } else if (has_controller(controllers, "cpu")) {
      limit = smallest_limit(mount + "/cpu", group, limit_v1);
    }
    if (limit > 0) smallest = smallest == 0 ? limit : std::min(smallest, limit);
  }
  return smallest;
}

int usable_cpus() {
  const int scheduled = std::max(affinity_count(), 1);
  const int quota = cgroup_cpu_limit("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota > 0 ? std::min(scheduled, quota) : scheduled;
}

}  // namespace tl
