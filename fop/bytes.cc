#include "fop/bytes.h"
