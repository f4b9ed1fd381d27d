/* bytewright.plan._native: the planner's C core for Python. Arrays come as bytes-like objects of the machine's own
 * int64 or int32; plan/native.py is the only caller and keeps their lengths right. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_exact.h"
#include "_first_fit.h"

enum { MAX_VIEWS = 16 };

typedef struct {
    Py_buffer view[MAX_VIEWS];
    int count;
} views;

static void release_views(views *v)
{
    while (v->count > 0)
        PyBuffer_Release(&v->view[--v->count]);
}

/* Opens `count` contiguous buffers from a tuple. Returns 0, or -1 with an exception set and nothing held. */
static int open_views(PyObject *arrays, int count, views *v)
{
    v->count = 0;
    if (PyTuple_Size(arrays) != count) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "expected %d arrays", count);
        return -1;
    }
    while (v->count < count) {
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, v->count), &v->view[v->count], PyBUF_SIMPLE) < 0) {
            release_views(v);
            return -1;
        }
        v->count++;
    }
    return 0;
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
    PyObject *arrays, *progress;
    int num_buffers, num_sections, num_orders, has_contracts;
    long long base, capacity, node_budget;
    if (!PyArg_ParseTuple(args, "iiipLLLOO!", &num_buffers, &num_sections, &num_orders, &has_contracts, &base,
                          &capacity, &node_budget, &progress, &PyTuple_Type, &arrays))
        return NULL;
    views v;
    if (open_views(arrays, 11, &v) < 0)
        return NULL;
    exact_instance in = {.num_buffers = num_buffers,
                         .num_sections = num_sections,
                         .num_orders = num_orders,
                         .has_contracts = has_contracts,
                         .size = v.view[0].buf,
                         .alignment = v.view[1].buf,
                         .fixed = v.view[2].buf,
                         .neighbour_row = v.view[3].buf,
                         .neighbour = v.view[4].buf,
                         .gap_above = v.view[5].buf,
                         .gap_below = v.view[6].buf,
                         .shared = v.view[7].buf,
                         .section_row = v.view[8].buf,
                         .section = v.view[9].buf,
                         .orders = v.view[10].buf,
                         .base = base};
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)num_buffers * (Py_ssize_t)sizeof(int64_t));
    if (offsets == NULL) {
        release_views(&v);
        return NULL;
    }
    int64_t num_nodes = 0;
    poll_state state = {progress, PyEval_SaveThread(), 0};
    int result = exact_search(&in, capacity, node_budget, poll_python, &state,
                              (int64_t *)(void *)PyBytes_AS_STRING(offsets), &num_nodes);
    PyEval_RestoreThread(state.thread);
    release_views(&v);
    if (state.failed || result == EXACT_NO_MEMORY) {
        Py_DECREF(offsets);
        return state.failed ? NULL : PyErr_NoMemory();
    }
    PyObject *answer = Py_BuildValue("iOL", result, result == EXACT_SOLVED ? offsets : Py_None, (long long)num_nodes);
    Py_DECREF(offsets);
    return answer;
}

static PyObject *native_first_fit(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *arrays;
    int num_buffers, num_pools, num_orders;
    if (!PyArg_ParseTuple(args, "iiiO!", &num_buffers, &num_pools, &num_orders, &PyTuple_Type, &arrays))
        return NULL;
    views v;
    if (open_views(arrays, 14, &v) < 0)
        return NULL;
    first_fit_problem problem = {.num_buffers = num_buffers,
                                 .num_pools = num_pools,
                                 .size = v.view[0].buf,
                                 .fixed = v.view[1].buf,
                                 .lifetime_row = v.view[2].buf,
                                 .lifetime = v.view[3].buf,
                                 .choice_row = v.view[4].buf,
                                 .choice_pool = v.view[5].buf,
                                 .choice_alignment = v.view[6].buf,
                                 .capacity = v.view[7].buf,
                                 .base = v.view[8].buf,
                                 .contract_row = v.view[9].buf,
                                 .contract_other = v.view[10].buf,
                                 .contract_above = v.view[11].buf,
                                 .contract_below = v.view[12].buf};
    const int32_t *orders = v.view[13].buf;
    Py_ssize_t cells = (Py_ssize_t)num_buffers * num_orders;
    PyObject *pools = PyBytes_FromStringAndSize(NULL, cells * (Py_ssize_t)sizeof(int32_t));
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, cells * (Py_ssize_t)sizeof(int64_t));
    if (pools == NULL || offsets == NULL) {
        Py_XDECREF(pools);
        Py_XDECREF(offsets);
        release_views(&v);
        return NULL;
    }
    int32_t *pool_cells = (int32_t *)(void *)PyBytes_AS_STRING(pools);
    int64_t *offset_cells = (int64_t *)(void *)PyBytes_AS_STRING(offsets);
    first_fit_pairs pairs = {NULL, NULL};
    PyThreadState *thread = PyEval_SaveThread();
    int failed = first_fit_find_pairs(&problem, &pairs);
    for (int run = 0; run < num_orders && !failed; run++) {
        Py_ssize_t at = (Py_ssize_t)run * num_buffers;
        failed = first_fit_place(&problem, &pairs, orders + at, pool_cells + at, offset_cells + at);
    }
    free(pairs.row);
    free(pairs.neighbour);
    PyEval_RestoreThread(thread);
    release_views(&v);
    PyObject *answer = failed ? PyErr_NoMemory() : Py_BuildValue("OO", pools, offsets);
    Py_DECREF(pools);
    Py_DECREF(offsets);
    return answer;
}

static PyMethodDef methods[] = {
    {"search", native_search, METH_VARARGS, "Offsets for one pool below a capacity: (result, offsets, nodes)."},
    {"first_fit", native_first_fit, METH_VARARGS, "Pools and offsets by first fit, one row for each order."},
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
