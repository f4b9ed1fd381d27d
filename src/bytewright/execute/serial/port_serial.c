/* The harness's program behind a serial line: its files are the host's, which it asks for what it reads and writes.
 *
 * The board asks and the host answers, one frame at a time. A frame is, of numbers in little-endian order,
 *
 *     type u8 | 0 u8 | session u16 | sequence u16 | length u16 | content | CRC-32 of all before u32
 *
 * and goes over the line in consistent overhead byte stuffing (Cheshire and Baker, 1999), between bytes that are 0. A
 * host begins a session, whatever the board did before, and is told the hash of the plan first. Whoever is given a
 * damaged frame has the last request sent again; an answer to an earlier request is ignored. The board has no clock: what
 * is lost the host asks for again.
 */
#include "port.h"
#include "serial.h"

#include <setjmp.h>
#include <string.h>

enum {
    PROTOCOL_VERSION = 1,
    HEAD_BYTES = 8,
    CHECK_BYTES = 4,
    DATA_BYTES = 256, /* the most that a frame has between head and check */
    FRAME_BYTES = HEAD_BYTES + DATA_BYTES + CHECK_BYTES,
    PIECE_HEAD_BYTES = 3
};

enum frame_type {
    FRAME_HELLO = 1, /* version u16, hash of the plan; to an empty answer */
    FRAME_OPEN,      /* mode u8, name; to the number i32 of the file, below 0 if the host does not want it */
    FRAME_READ,      /* file i32, size u32; to so many bytes, fewer at the end of the file */
    FRAME_WRITE,     /* pieces, each of file u8, length u16 and bytes; to an empty answer */
    FRAME_EXIT,      /* status i32; to an empty answer */
    FRAME_BEGIN = 16,
    FRAME_ANSWER,
    FRAME_AGAIN
};

/* What happens to a session from inside it. */
enum { SESSION_BEGINS = 1, SESSION_ENDS, LINE_ENDS };

/* What stands for a step in a mark besides its number. */
enum { RUN_BEGINS = -1, RUN_ENDS = -2 };

enum { FILE_UNKNOWN = -2 };

static const harness_serial_line *the_line;
static jmp_buf the_session;
static uint16_t session_number;
static uint16_t sequence;
static uint8_t sent[FRAME_BYTES];
static size_t num_sent;
static uint8_t received[FRAME_BYTES];

/* What was read ahead of the one file that is read, and what is still to be written: fewer frames, for what they take. */
static uint8_t ahead[DATA_BYTES];
static size_t ahead_bytes;
static size_t ahead_done;
static uint8_t behind[DATA_BYTES];
static size_t behind_bytes;

static int64_t cycles_of_run; /* below 0 once they are not known */
static int steps_file;

static void put_number(uint8_t *to, uint32_t number, size_t num_bytes)
{
    for (size_t index = 0; index < num_bytes; ++index) {
        to[index] = (uint8_t)(number >> (8 * index));
    }
}

static uint32_t number_at(const uint8_t *from, size_t num_bytes)
{
    uint32_t number = 0;

    for (size_t index = 0; index < num_bytes; ++index) {
        number |= (uint32_t)from[index] << (8 * index);
    }
    return number;
}

static uint32_t crc32_of(const uint8_t *bytes, size_t num_bytes)
{
    uint32_t crc = 0xFFFFFFFFu;

    for (size_t index = 0; index < num_bytes; ++index) {
        crc ^= bytes[index];
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

/* Puts the frame in `sent` on the line, so often as is asked. */
static void put_frame(void)
{
    size_t first = 0;

    the_line->put_byte(0);
    while (first <= num_sent) {
        size_t num_bytes = 0;

        while (num_bytes < 254 && first + num_bytes < num_sent && sent[first + num_bytes] != 0) {
            ++num_bytes;
        }
        the_line->put_byte((uint8_t)(num_bytes + 1));
        for (size_t index = 0; index < num_bytes; ++index) {
            the_line->put_byte(sent[first + index]);
        }
        first += num_bytes + (num_bytes < 254 ? 1 : 0);
    }
    the_line->put_byte(0);
}

/* The bytes between two that are 0, without their stuffing, in `received`: how many, or 0 if they are no frame's. */
static size_t get_stuffed(void)
{
    size_t num_bytes = 0;
    int left = 0;
    int code = 0;

    for (;;) {
        const int byte = the_line->get_byte();
        int value = byte;

        if (byte < 0) {
            longjmp(the_session, LINE_ENDS);
        }
        if (byte == 0) {
            if (code == 0) {
                continue; /* nothing between two zero bytes */
            }
            return left == 0 && num_bytes <= FRAME_BYTES ? num_bytes : 0;
        }
        if (left == 0) {
            const int is_zero = code != 0 && code != 255;

            code = byte;
            left = byte - 1;
            if (!is_zero) {
                continue;
            }
            value = 0;
        } else {
            --left;
        }
        if (num_bytes < FRAME_BYTES) {
            received[num_bytes] = (uint8_t)value;
        }
        num_bytes += num_bytes <= FRAME_BYTES;
    }
}

/* Waits for a frame: whether it is whole. One that begins a session does so. */
static int get_frame(void)
{
    const size_t num_bytes = get_stuffed();

    if (num_bytes < HEAD_BYTES + CHECK_BYTES ||
        number_at(received + 6, 2) != num_bytes - HEAD_BYTES - CHECK_BYTES ||
        number_at(received + num_bytes - CHECK_BYTES, CHECK_BYTES) != crc32_of(received, num_bytes - CHECK_BYTES)) {
        return 0;
    }
    if (received[0] == FRAME_BEGIN) {
        session_number = (uint16_t)number_at(received + 2, 2);
        longjmp(the_session, SESSION_BEGINS);
    }
    return 1;
}

/* Sends a request and waits for its answer, which begins at received + HEAD_BYTES. Returns its length. */
static size_t ask(enum frame_type type, const uint8_t *head, size_t head_bytes, const void *data, size_t data_bytes)
{
    const size_t length = head_bytes + data_bytes;

    sent[0] = (uint8_t)type;
    sent[1] = 0;
    put_number(sent + 2, session_number, 2);
    put_number(sent + 4, sequence, 2);
    put_number(sent + 6, (uint32_t)length, 2);
    memcpy(sent + HEAD_BYTES, head, head_bytes);
    if (data_bytes > 0) {
        memcpy(sent + HEAD_BYTES + head_bytes, data, data_bytes);
    }
    put_number(sent + HEAD_BYTES + length, crc32_of(sent, HEAD_BYTES + length), CHECK_BYTES);
    num_sent = HEAD_BYTES + length + CHECK_BYTES;
    put_frame();
    for (;;) {
        if (!get_frame()) {
            put_frame();
        } else if (number_at(received + 2, 2) == session_number) {
            if (received[0] == FRAME_AGAIN) {
                put_frame();
            } else if (received[0] == FRAME_ANSWER && number_at(received + 4, 2) == sequence) {
                ++sequence;
                return number_at(received + 6, 2);
            }
        }
    }
}

static void write_behind(void)
{
    if (behind_bytes > 0) {
        ask(FRAME_WRITE, behind, behind_bytes, NULL, 0);
        behind_bytes = 0;
    }
}

static void end_session(int status)
{
    uint8_t head[4];

    write_behind();
    put_number(head, (uint32_t)status, 4);
    ask(FRAME_EXIT, head, sizeof head, NULL, 0);
}

void port_exit(int status)
{
    end_session(status);
    longjmp(the_session, SESSION_ENDS);
}

/* The number of a file, below 0 if the host does not want it. */
static int opened(const char *path, int mode)
{
    const uint8_t head[1] = {(uint8_t)mode};

    return ask(FRAME_OPEN, head, sizeof head, path, strlen(path)) == 4 ? (int)(int32_t)number_at(received + HEAD_BYTES, 4)
                                                                      : -1;
}

int port_open(const char *path, int mode)
{
    const int file = opened(path, mode);

    if (file < 0) {
        port_exit(HARNESS_MACHINE_FAILED);
    }
    return file;
}

void port_read(int file, void *to, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        size_t num_bytes;

        if (ahead_done == ahead_bytes) {
            uint8_t head[8];

            put_number(head, (uint32_t)file, 4);
            put_number(head + 4, DATA_BYTES, 4);
            ahead_bytes = ask(FRAME_READ, head, sizeof head, NULL, 0);
            ahead_done = 0;
            if (ahead_bytes == 0 || ahead_bytes > DATA_BYTES) {
                port_exit(HARNESS_MACHINE_FAILED);
            }
            memcpy(ahead, received + HEAD_BYTES, ahead_bytes);
        }
        num_bytes = ahead_bytes - ahead_done < size_bytes - done ? ahead_bytes - ahead_done : size_bytes - done;
        memcpy((uint8_t *)to + done, ahead + ahead_done, num_bytes);
        ahead_done += num_bytes;
        done += num_bytes;
    }
}

void port_write(int file, const void *from, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        size_t num_bytes;

        if (behind_bytes + PIECE_HEAD_BYTES >= DATA_BYTES) {
            write_behind();
        }
        num_bytes = DATA_BYTES - PIECE_HEAD_BYTES - behind_bytes;
        num_bytes = size_bytes - done < num_bytes ? size_bytes - done : num_bytes;
        behind[behind_bytes] = (uint8_t)file;
        put_number(behind + behind_bytes + 1, (uint32_t)num_bytes, 2);
        memcpy(behind + behind_bytes + PIECE_HEAD_BYTES, (const uint8_t *)from + done, num_bytes);
        behind_bytes += PIECE_HEAD_BYTES + num_bytes;
        done += num_bytes;
    }
}

/* Adds the cycles since the last call to those of the run. */
static void count_cycles(void)
{
    const int64_t cycles = the_line->cycles == NULL ? -1 : the_line->cycles();

    cycles_of_run = cycles < 0 || cycles_of_run < 0 ? -1 : cycles_of_run + cycles;
}

/* Writes what was come to, and the cycles of the run until then, if the host wants to know. */
static void keep_mark(int64_t what)
{
    const int64_t mark[2] = {what, cycles_of_run};

    if (steps_file == FILE_UNKNOWN) {
        steps_file = opened("steps.bin", PORT_WRITE);
    }
    if (steps_file >= 0) {
        port_write(steps_file, mark, sizeof mark);
    }
}

/* Between the kernels, where the bundle is compiled with that. */
void harness_serial_step(unsigned int step)
{
    count_cycles();
    keep_mark((int64_t)step);
    if (the_line->cycles != NULL) {
        (void)the_line->cycles(); /* what this took is not the run's */
    }
}

int32_t harness_run_measured(harness_session *session, const int32_t *extents, int64_t *measured)
{
    int32_t status;

    cycles_of_run = 0;
    keep_mark(RUN_BEGINS);
    if (the_line->cycles != NULL) {
        (void)the_line->cycles();
    }
    status = harness_run(session, extents);
    count_cycles();
    keep_mark(RUN_ENDS);
    *measured = cycles_of_run;
    return status;
}

static void serve_session(void)
{
    uint8_t head[2];

    sequence = 0;
    ahead_bytes = ahead_done = behind_bytes = 0;
    steps_file = FILE_UNKNOWN;
    put_number(head, PROTOCOL_VERSION, 2);
    ask(FRAME_HELLO, head, sizeof head, harness_plan_hash, sizeof harness_plan_hash);
    end_session(harness_main());
}

void harness_serial(const harness_serial_line *line)
{
    the_line = line;
    switch (setjmp(the_session)) {
    case SESSION_BEGINS:
        serve_session();
        break;
    case LINE_ENDS:
        return;
    default:
        break;
    }
    for (;;) {
        (void)get_frame();
    }
}

port_memory port_obtain_memory(void)
{
    const port_memory memory = {lent_workspaces, lent_blobs, lent_copies};

    return memory;
}

void *port_buffer(int index, size_t size_bytes)
{
    (void)size_bytes;
    return buffers[index];
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* Registers of Armv6-M to Armv8-M (their Architecture Reference Manuals, System Control Space and DWT). */
#define DEMCR (*(volatile uint32_t *)(uintptr_t)0xE000EDFCu)
#define DWT_CTRL (*(volatile uint32_t *)(uintptr_t)0xE0001000u)
#define DWT_CYCCNT (*(volatile uint32_t *)(uintptr_t)0xE0001004u)
#define DWT_LAR (*(volatile uint32_t *)(uintptr_t)0xE0001FB0u)
#define SYST_CSR (*(volatile uint32_t *)(uintptr_t)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)(uintptr_t)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)(uintptr_t)0xE000E018u)

/* Whether CYCCNT is there and counts; an emulator may have the register alone. */
static int has_cycle_counter(void)
{
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
    return 0;
#else
    uint32_t first;

    DEMCR |= 1u << 24;      /* TRCENA */
    DWT_LAR = 0xC5ACCE55u;  /* where registers are locked until then, as on some Cortex-M7 */
    DWT_CTRL |= 1u;         /* CYCCNTENA */
    first = DWT_CYCCNT;
    for (int turn = 0; turn < 16; ++turn) {
        if (DWT_CYCCNT != first) {
            return 1;
        }
    }
    return 0;
#endif
}

int64_t harness_serial_cycles(void)
{
    static enum { COUNTER_UNKNOWN, COUNTER_CYCCNT, COUNTER_SYSTICK } counter;
    static uint32_t last;
    uint32_t now;

    if (counter == COUNTER_UNKNOWN) {
        counter = has_cycle_counter() ? COUNTER_CYCCNT : COUNTER_SYSTICK;
        if (counter == COUNTER_SYSTICK) {
            SYST_RVR = 0xFFFFFFu;
            SYST_CVR = 0;
            SYST_CSR = 5u; /* counts the processor's clock, without interrupts */
        }
    }
    if (counter == COUNTER_CYCCNT) {
        const uint32_t before = last;

        last = now = DWT_CYCCNT;
        return (int64_t)(uint32_t)(now - before);
    }
    now = (0u - SYST_CVR) & 0xFFFFFFu;
    if ((SYST_CSR & (1u << 16)) != 0) { /* it came to 0 */
        now = UINT32_MAX;
    }
    SYST_CVR = 0;
    return now == UINT32_MAX ? -1 : (int64_t)now;
}
#endif
