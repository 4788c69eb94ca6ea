// How a session of modules begins, whatever language they are of.
#pragma once

#include <memory>

#include <layertrace/binding.h>

namespace layertrace {

class SessionStarter {
 public:
  static Result<Session> start(std::shared_ptr<binding::ModuleSource> source,
                               const binding::Models& models, Options options);
};

}  // namespace layertrace
