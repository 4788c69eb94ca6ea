// What the conventions have in common: sums over the layer tree, and notes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::report {

// One number for each layer, without children.
using LayerCounts = std::vector<double>;

ConventionCounts::Counts by_module(const Profile& profile, LayerCounts counts);

// By name, the largest first; zeros are left out.
ConventionCounts::Counts by_size(const std::map<std::string, double>& counts);

// A remark that holds for many layers becomes one sentence that names the first of them.
class Remarks {
 public:
  void add(std::string_view remark, std::string_view path);
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
  std::vector<std::string> sentences() const;

 private:
  std::map<std::string, std::vector<std::string>> places_;
  std::vector<std::string> sentences_;
};

std::string_view convention_name(Convention convention);

ConventionCounts layertrace_counts(const Profile& profile);
ConventionCounts fvcore_counts(const Profile& profile);
ConventionCounts torchinfo_counts(const Profile& profile);
ConventionCounts moduleprofiler_counts(const Profile& profile);
ConventionCounts deeplite_counts(const Profile& profile);

}  // namespace layertrace::report
