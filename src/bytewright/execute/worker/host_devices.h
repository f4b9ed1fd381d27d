/* What a run on the host knows of the other devices of a model, beside their hooks, which harness.h declares. */
#ifndef BYTEWRIGHT_HOST_DEVICES_H
#define BYTEWRIGHT_HOST_DEVICES_H

#include "harness.h"
#include "jobs.h"

/* What the last run that a device ended failed at. */
HARNESS_EXPORT const job_failure *harness_failure_of_device(void);

/* Ends the processes of all devices; the next run begins them again. */
HARNESS_EXPORT void harness_stop_devices(void);

#endif
