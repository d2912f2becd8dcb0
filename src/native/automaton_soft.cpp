// Sums over all paths to the nodes of an automaton, and from them. Nothing is compared for equality with a sum formed elsewhere,
// so products and sums may be one operation.
#include "automaton_recursion.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

void soft_back(const AutomatonCosts<double> &costs, const NodeGroup &group, double *after, GroupRows<double> &rows) {
    Recursion<Sum>(costs, group, rows).backward(after);
}
void soft_mass(const AutomatonCosts<double> &costs, const NodeGroup &group, const double *total, GroupRows<double> &rows) {
    Recursion<Sum>(costs, group, rows).mass(total);
}
void soft_add(const double *from, const double *cost, bool videos, int64_t count, double *into) {
    if (videos) add_vectors<Sum>(from, load(cost), count, into);
    else add<Sum>(from, *cost, count, into);
}

}  // namespace
}  // namespace G2V_ARCH

SoftAutomatonKernels G2V_JOIN(soft_automaton_kernels_, G2V_ARCH)() {
    using namespace G2V_ARCH;
    return {forward<Sum>, soft_back, soft_mass, apart<double>, soft_add};
}

}  // namespace g2v
