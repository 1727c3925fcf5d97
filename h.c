#include "kw/Scale.h"
#include "kw/scale.h"
int main(void){ return scale_launch == 0 && Scale_launch == 0; }
