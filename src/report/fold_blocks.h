// A transformer of 48 equal blocks would print 48 equal subtrees. Here the layers of a Profile
// become the rows of a tree, siblings of one shape as one row; every figure of such a row, and of
// the rows below it, is the sum over the layers that it stands for, so that the columns of a folded
// tree still add up.
//
// Folded are three or more neighbours, in the order of definition, of the same shape (type, ran,
// registered, shared with, how many parameters, trainable ones too, and the same for all below,
// with equal names) whose names count up: "0", "1", "2" or "block1", "block2", "block3". Layers
// without children fold only under bare numbers: fc1, fc2 and fc3 were named to be told apart.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>

#include "report/figures.h"

namespace layertrace::report {

struct Node {
  std::vector<int> layers;  // indices into Profile::layers; several in and below a folded row
  std::size_t blocks = 1;   // siblings that were folded into this row
  std::string first_name;   // of the siblings' names; not cleaned
  std::string last_name;
  std::size_t below = 0;       // layers below, in all of `layers`
  Figures figures;             // sums over `layers`
  std::vector<Node> children;  // sorted
};

// The subtree of each of these layers, in their order, folded among each other too. Of the layers
// only those that are shown; `shown` has one for each.
std::vector<Node> make_nodes(const Profile& profile, const std::vector<int>& roots, bool fold,
                             SortKey sort, const std::vector<bool>& shown);

}  // namespace layertrace::report
