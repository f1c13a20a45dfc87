// How many CPUs this process may really use: a container that was given two of the machine's 128
// gains nothing from 128 threads.
#pragma once

#include <string>

namespace tl {

// The CPUs this process may be scheduled on, cut to its cgroup's quota; at least 1.
int usable_cpus();

// The quota of the process's cgroup in whole CPUs, rounded up, or 0 when there is none.
// `membership` is the file that names the cgroup (/proc/self/cgroup) and `mount` the folder where
// the hierarchy is found (/sys/fs/cgroup).
int cgroup_cpu_limit(const std::string& membership, const std::string& mount);

}  // namespace tl
