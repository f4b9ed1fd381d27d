/* What a machine brings to the harness's program (main.c): files, memory, and its end. The run itself is in harness.h. */
#ifndef BYTEWRIGHT_PORT_H
#define BYTEWRIGHT_PORT_H

#include "harness.h"

/* How the program ends. */
enum {
    HARNESS_FINE = 0,
    HARNESS_MACHINE_FAILED = 1,
    HARNESS_MODEL_FAILED = 2, /* report.txt has the status */
    HARNESS_VIOLATED = 3,     /* a paranoid run found something */
    HARNESS_FAULTED = 4
};

/* Memory for the whole program, in the order of the tables. */
typedef struct {
    void *const *workspaces; /* behind their first guards */
    const void *const *blobs;
    void *const *copies;
} port_memory;

port_memory port_obtain_memory(void);
/* Memory of an input or output of one inference, by its number; outputs follow inputs. It lasts until the next one. */
void *port_buffer(int index, size_t size_bytes);

/* Files, by number. What fails ends the program. */
enum { PORT_READ, PORT_WRITE };
int port_open(const char *path, int mode);
void port_read(int file, void *to, size_t size_bytes);
void port_write(int file, const void *from, size_t size_bytes);

void port_exit(int status) HARNESS_NORETURN;

/* The whole program, where it is not all that there is. Returns how it ended. */
#ifndef HARNESS_MAIN
#define HARNESS_MAIN main
#endif
int HARNESS_MAIN(void);

/* Writes a fact to report.txt: "name value"; nothing before that is open. */
void harness_report(const char *name, int64_t value);
#if HARNESS_NUM_DEVICES > 0
/* Reports what is known of the devices after the last run: which one ended it, and why, if one did. */
void harness_report_devices(void);
#endif

#if HARNESS_NUM_REGIONS > 0
/* Ends the protection of a run, from inside it. */
void harness_unprotect(void);
#endif

#endif
