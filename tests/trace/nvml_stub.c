/* A driver library with one GPU, for tests of what pynvml really calls. MODE in the environment spoils it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
static int asked;
static int is(const char *word) { const char *mode = getenv("MODE"); return mode && !strcmp(mode, word); }
int nvmlInitWithFlags(unsigned flags) { return is("unloaded") ? 9 : is("forbidden") ? 4 : is("mismatch") ? 18 : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "trouble"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "570.1", size); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = is("none") ? 0 : 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = (void *)(long)(index + 1);
  return is("lost") ? 15 : 0;
}
int nvmlDeviceGetName(void *h, char *text, unsigned size) { strncpy(text, "Stub GPU", size); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, memory_t *m) { m->total = 1000; m->used = 400; m->free = 600; return 0; }
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *then) { *now = *then = is("mig"); return 0; }
/* What the counters answer: not supported (3), or after a few samples that the GPU is lost (15). */
static int counter(void) { return is("mute") ? 3 : is("lost") || (is("losing") && ++asked > 4) ? 15 : 0; }
int nvmlDeviceGetUtilizationRates(void *h, utilization_t *u) {
  if (is("mig")) return 3;
  if (counter()) return counter();
  u->gpu = 25; u->memory = 5; return 0;
}
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { *mw = 123000; return counter(); }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *mw) { *mw = 700000; return is("mute") ? 3 : 0; }
int nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *mhz) { *mhz = 1500; return counter(); }
int nvmlDeviceGetPcieThroughput(void *h, unsigned which, unsigned *kb) { *kb = which ? 7 : 5; return counter(); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *bits) { *bits = 0x1 | 0x40; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *count, process_t *found) {
  if (!found || *count < 2) { *count = 2; return 7; }
  memset(found, 0, 2 * sizeof *found);
  found[0].pid = is("container") ? 999998 : getpid();
  found[1].pid = 999999;
  *count = 2;
  return 0;
}
