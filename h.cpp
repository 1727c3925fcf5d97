#include "kw/*.h"
#include "kw/*.h"
int main(void){return 0;}
