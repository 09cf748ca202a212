// Products on the tensor cores of capability 9.0.
#include "tile_sm90.cuh"
