// cuDNN is not simulated: PyTorch is told that its user does not want it, and takes its own
// kernels. These are two functions of PyTorch's (class at::Context), by the names that the compiler
// gives them; preloaded, they come before the originals. A program without PyTorch never calls
// them.

extern "C" __attribute__((visibility("default"))) bool
_ZNK2at7Context16userEnabledCuDNNEv(  // at::Context::userEnabledCuDNN() const
    const void* /*context*/) {
  return false;
}

extern "C" __attribute__((visibility("default"))) bool
_ZNK2at7Context19userEnabledCuDNNSDPEv(  // at::Context::userEnabledCuDNNSDP() const
    const void* /*context*/) {
  return false;
}
