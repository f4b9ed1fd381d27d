/* bytewright.plan._native: the planner's C core for Python. Arrays come as bytes-like objects of the machine's own
 * int64 or int32; plan/native.py is the only caller and keeps their lengths right. The module uses the limited API of
 * Python 3.11 alone, so that one build serves all later ones (setup.py). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "_exact.h"
#include "_first_fit.h"

/* Room for so many numbers of a size, as bytes. */
static PyObject *new_cells(int32_t count, size_t size)
{
    return PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)size);
}

static void *cells_of(PyObject *bytes)
{
    return PyBytes_AsString(bytes);
}

static void release(Py_buffer *views, int count)
{
    while (count > 0)
        PyBuffer_Release(&views[--count]);
}

typedef struct {
    PyObject *progress;
    PyThreadState *thread;
    int failed;
} poll_state;

static int poll_python(void *context, int64_t num_nodes)
{
    poll_state *state = context;
    PyEval_RestoreThread(state->thread);
    if (PyErr_CheckSignals() < 0) {
        state->failed = 1;
    } else if (state->progress != Py_None) {
        PyObject *result = PyObject_CallFunction(state->progress, "L", (long long)num_nodes);
        if (result == NULL)
            state->failed = 1;
        else
            Py_DECREF(result);
    }
    state->thread = PyEval_SaveThread();
    return state->failed;
}

static PyObject *native_search(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *progress, *arrays;
    int num_buffers, num_sections, num_orders, has_contracts;
    long long base, capacity, node_budget, work_budget;
    Py_buffer v[13];
    if (!PyArg_ParseTuple(args, "iiipLLLLOO!", &num_buffers, &num_sections, &num_orders, &has_contracts, &base,
                          &capacity, &node_budget, &work_budget, &progress, &PyTuple_Type, &arrays) ||
        !PyArg_ParseTuple(arrays, "y*y*y*y*y*y*y*y*y*y*y*y*y*", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7],
                          &v[8], &v[9], &v[10], &v[11], &v[12]))
        return NULL;
    exact_instance in = {.num_buffers = num_buffers,
                         .num_sections = num_sections,
                         .num_orders = num_orders,
                         .has_contracts = has_contracts,
                         .num_levels = (int32_t)(v[12].len / (Py_ssize_t)sizeof(int64_t)),
                         .size = v[0].buf,
                         .alignment = v[1].buf,
                         .fixed = v[2].buf,
                         .neighbour_row = v[3].buf,
                         .neighbour = v[4].buf,
                         .gap_above = v[5].buf,
                         .gap_below = v[6].buf,
                         .shared = v[7].buf,
                         .section_row = v[8].buf,
                         .section = v[9].buf,
                         .orders = v[10].buf,
                         .room = v[11].buf,
                         .level = v[12].buf,
                         .base = base};
    PyObject *offsets = new_cells(num_buffers, sizeof(int64_t)), *answer = NULL;
    if (offsets != NULL) {
        int64_t num_nodes, work;
        poll_state state = {progress, PyEval_SaveThread(), 0};
        int result = exact_search(&in, capacity, node_budget, work_budget, poll_python, &state, cells_of(offsets),
                                  &num_nodes, &work);
        PyEval_RestoreThread(state.thread);
        if (result == EXACT_NO_MEMORY)
            PyErr_NoMemory();
        else if (!state.failed)
            answer = Py_BuildValue("iOLL", result, result == EXACT_SOLVED ? offsets : Py_None, (long long)num_nodes,
                                   (long long)work);
    }
    Py_XDECREF(offsets);
    release(v, 13);
    return answer;
}

static const char PAIRS_NAME[] = "bytewright.plan._native.pairs";

static void free_pairs(first_fit_pairs *pairs)
{
    free(pairs->row);
    free(pairs->neighbour);
    free(pairs);
}

static void free_pairs_capsule(PyObject *capsule)
{
    free_pairs(PyCapsule_GetPointer(capsule, PAIRS_NAME));
}

/* The coexisting pairs as a new reference to a capsule. */
static PyObject *find_pairs(const first_fit_problem *problem)
{
    first_fit_pairs *pairs = calloc(1, sizeof *pairs);
    if (pairs == NULL)
        return PyErr_NoMemory();
    PyThreadState *thread = PyEval_SaveThread();
    int failed = first_fit_find_pairs(problem, pairs);
    PyEval_RestoreThread(thread);
    PyObject *capsule = failed ? PyErr_NoMemory() : PyCapsule_New(pairs, PAIRS_NAME, free_pairs_capsule);
    if (capsule == NULL)
        free_pairs(pairs);
    return capsule;
}

static PyObject *native_first_fit(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *arrays;
    int num_buffers, num_pools;
    Py_buffer v[14];
    if (!PyArg_ParseTuple(args, "iiOO!", &num_buffers, &num_pools, &capsule, &PyTuple_Type, &arrays) ||
        !PyArg_ParseTuple(arrays, "y*y*y*y*y*y*y*y*y*y*y*y*y*y*", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
                          &v[7], &v[8], &v[9], &v[10], &v[11], &v[12], &v[13]))
        return NULL;
    first_fit_problem problem = {.num_buffers = num_buffers,
                                 .num_pools = num_pools,
                                 .size = v[0].buf,
                                 .fixed = v[1].buf,
                                 .lifetime_row = v[2].buf,
                                 .lifetime = v[3].buf,
                                 .choice_row = v[4].buf,
                                 .choice_pool = v[5].buf,
                                 .choice_alignment = v[6].buf,
                                 .capacity = v[7].buf,
                                 .base = v[8].buf,
                                 .contract_row = v[9].buf,
                                 .contract_other = v[10].buf,
                                 .contract_above = v[11].buf,
                                 .contract_below = v[12].buf};
    capsule = capsule == Py_None ? find_pairs(&problem) : Py_NewRef(capsule);
    const first_fit_pairs *pairs = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, PAIRS_NAME);
    PyObject *pools = new_cells(num_buffers, sizeof(int32_t)), *offsets = new_cells(num_buffers, sizeof(int64_t));
    PyObject *answer = NULL;
    if (pairs != NULL && pools != NULL && offsets != NULL) {
        PyThreadState *thread = PyEval_SaveThread();
        int failed = first_fit_place(&problem, pairs, v[13].buf, cells_of(pools), cells_of(offsets));
        PyEval_RestoreThread(thread);
        answer = failed ? PyErr_NoMemory() : PyTuple_Pack(3, capsule, pools, offsets);
    }
    Py_XDECREF(capsule);
    Py_XDECREF(pools);
    Py_XDECREF(offsets);
    release(v, 14);
    return answer;
}

static PyMethodDef methods[] = {
    {"search", native_search, METH_VARARGS, "Offsets for one pool below a capacity: (result, offsets, nodes, work)."},
    {"first_fit", native_first_fit, METH_VARARGS, "First fit in one order: (pairs, pools, offsets)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bytewright.plan._native",
    .m_doc = "The planner's C core.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModule_Create(&definition);
}
