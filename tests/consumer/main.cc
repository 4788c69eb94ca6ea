#include <layertrace/layertrace.h>

int main() { return 0; }
