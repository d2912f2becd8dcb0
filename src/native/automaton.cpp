// The least cost of being at the nodes of an automaton.
#include "automaton_blocks.hpp"

namespace g2v {

AutomatonKernels G2V_JOIN(automaton_kernels_, G2V_ARCH)() {
    using namespace G2V_ARCH;
    return {hard<float>, hard<double>, outlook<float>, outlook<double>};
}

}  // namespace g2v
