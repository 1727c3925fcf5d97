/* C, as pthread_cleanup_push of C++ is a destructor, which comes too late. */

#include "Unlocked.h"

#include <pthread.h>
#include <unistd.h>

static void stop(void *unused) {
  (void)unused;
  for (;;)
    pause();
}

void ditherStopAtExit(void (*function)(void *), void *argument) {
  pthread_cleanup_push(stop, NULL);
  function(argument);
  pthread_cleanup_pop(0);
}
