// `weir-keeper`: keeps one child. The orchestrator starts it; people have no use for it.
#include "weir/keeper/keeping.hpp"

int main(int argc, char** argv) { return weir::keeper::keep(argc, argv); }
