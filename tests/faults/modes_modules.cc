// Modules that throw, recurse, are shared, vanish, come again, or have names to be wary of.
#include <array>
#include <memory>
#include <new>
#include <stdexcept>

#include "victim.h"

namespace victim {
namespace {

namespace nn = torch::nn;

// Throws in the middle of a layer, three scopes deep.
struct ThrowingImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x, bool throws) {
    const layertrace::ModuleScope scope(this);
    if (throws) throw std::runtime_error("the user's own trouble");
    return x + 1;
  }
};
TORCH_MODULE(Throwing);

struct RecursiveImpl : nn::Module {
  RecursiveImpl() { fc = register_module("fc", nn::Linear(4, 4)); }
  torch::Tensor forward(torch::Tensor x, int depth) {
    const layertrace::ModuleScope scope(this);
    x = fc(x);
    return depth == 0 ? x : forward(x, depth - 1);
  }
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Recursive);

// Two classes of the same size, so that one can stand where the other stood.
template <int kFactor>
struct TemporaryImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    const layertrace::ModuleScope scope(this);
    return x * kFactor;
  }
};
using FirstImpl = TemporaryImpl<1>;
using SecondImpl = TemporaryImpl<2>;

// Runs its module's forward again in the backward pass.
struct Recompute : torch::autograd::Function<Recompute> {
  static nn::Linear& layer() {
    static nn::Linear linear{nullptr};
    return linear;
  }
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x) {
    context->save_for_backward({x});
    return layer()(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::AutoGradMode with_grad(true);
    torch::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    layer()(x).backward(gradients[0]);
    return {x.grad()};
  }
};

struct ZooImpl : nn::Module {
  ZooImpl() {
    throwing = register_module("throwing", Throwing());
    recursive = register_module("recursive", Recursive());
    shared = nn::Linear(4, 4);
    register_module("first", shared);
    register_module("second", shared);
    recomputed = register_module("recomputed", nn::Linear(4, 4));
    Recompute::layer() = recomputed;
  }
  torch::Tensor forward(torch::Tensor x, bool throws) {
    const layertrace::ModuleScope scope(this);
    x = recursive->forward(x, 4);
    x = shared(shared(x));
    x = Recompute::apply(x);
    return throwing->forward(x, throws);
  }
  Throwing throwing{nullptr};
  Recursive recursive{nullptr};
  nn::Linear shared{nullptr}, recomputed{nullptr};
};
TORCH_MODULE(Zoo);

// A place in memory where module after module is made and destroyed.
class Place {
 public:
  template <typename Module>
  std::shared_ptr<Module> make() {
    static_assert(sizeof(Module) <= sizeof(bytes_));
    return {new (bytes_.data()) Module, [](Module* module) { module->~Module(); }};
  }

 private:
  alignas(64) std::array<std::byte, 1024> bytes_;
};

// One after the other at the same address: a registered module, one of another class, one of the
// first class again.
void run_at_one_place(Zoo& model, Place& place, int step, const torch::Tensor& x) {
  const layertrace::ModuleScope scope(model.get());
  if (step == 0) {
    model->named_children()["removed"]->as<FirstImpl>()->forward(x);
    model->unregister_module("removed");
  } else if (step == 1) {
    model->register_module("other_class", place.make<SecondImpl>())->forward(x);
    model->unregister_module("other_class");
  } else {
    model->register_module("same_class", place.make<FirstImpl>())->forward(x);
    model->unregister_module("same_class");
  }
}

// modules OUTPUT: three steps of all of that.
int modules(const Arguments& arguments) {
  Zoo model;
  Place place;
  model->register_module("removed", place.make<FirstImpl>());
  Session session = must_start(*model, {.output = arguments.at(0)});
  const torch::Tensor x = torch::ones({2, 4}).requires_grad_();
  for (int step = 0; step < 3; ++step) {
    try {
      model->forward(x, true);
    } catch (const std::runtime_error& error) {
      say("caught", error.what());
    }
    try {
      model->recursive->fc(
          torch::ones({2, 5}));  // of the wrong shape: LibTorch throws inside its own layer
    } catch (const c10::Error&) {
      say("caught_torch", "c10::Error");
    }
    model->forward(x, false).sum().backward();
    nn::Linear(4, 2)(x);  // comes and goes, each time elsewhere
    run_at_one_place(model, place, step, x);
    session.step();
  }
  const auto profile = session.stop();
  say("stop", outcome(profile));
  if (profile) say_profile(*profile);
  return 0;
}

// names OUTPUT: names that a terminal, a JSON reader or a web page would take for more than a name.
int names(const Arguments& arguments) {
  nn::Sequential model;
  const std::array<std::string, 8> hostile = {
      "\x1b[31mred\x1b]0;title\a",
      "two\nlines\ttab",
      "quote\"back\\slash",
      "</script><script>alert(1)</script>",
      "not utf-8: \xff\xfe\xc3",
      "層→🙂",
      "{0} %s %n",
      std::string(5000, 'n'),
  };
  for (const std::string& name : hostile) model->push_back(std::string(name), nn::Linear(4, 4));
  const torch::Tensor x = torch::ones({2, 4});
  Session session = must_start(*model, {.output = arguments.at(0)});
  {
    const layertrace::ModuleScope scope(model.get());
    const layertrace::Scope region("region\n\x1b[2J\xff");
    model->forward(x).sum().backward();
  }
  session.step();
  const auto profile = session.stop();
  say("stop", outcome(profile));
  return 0;
}

}  // namespace

std::span<const Mode> module_modes() {
  static constexpr Mode kModes[] = {{"modules", &modules}, {"names", &names}};
  return kModes;
}

}  // namespace victim
