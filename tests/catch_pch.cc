// CMake makes the precompiled header only for a target with a source that uses it; catch_main.cc
// cannot.
