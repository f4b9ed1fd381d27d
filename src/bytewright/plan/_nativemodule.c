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
    long long base, capacity, node_budget, work_budget;
    if (!PyArg_ParseTuple(args, "iiipLLLLOO!", &num_buffers, &num_sections, &num_orders, &has_contracts, &base,
                          &capacity, &node_budget, &work_budget, &progress, &PyTuple_Type, &arrays))
        return NULL;
    views v;
    if (open_views(arrays, 13, &v) < 0)
        return NULL;
    Py_ssize_t num_levels = v.view[12].len / (Py_ssize_t)sizeof(int64_t);
    if (num_levels > EXACT_MAX_LEVELS) {
        release_views(&v);
        PyErr_SetString(PyExc_ValueError, "too many levels");
        return NULL;
    }
    exact_instance in = {.num_buffers = num_buffers,
                         .num_sections = num_sections,
                         .num_orders = num_orders,
                         .has_contracts = has_contracts,
                         .num_levels = (int32_t)num_levels,
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
                         .room = v.view[11].buf,
                         .level = v.view[12].buf,
                         .base = base};
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)num_buffers * (Py_ssize_t)sizeof(int64_t));
    if (offsets == NULL) {
        release_views(&v);
        return NULL;
    }
    int64_t num_nodes = 0, work = 0;
    poll_state state = {progress, PyEval_SaveThread(), 0};
    int result = exact_search(&in, capacity, node_budget, work_budget, poll_python, &state,
                              (int64_t *)(void *)PyBytes_AS_STRING(offsets), &num_nodes, &work);
    PyEval_RestoreThread(state.thread);
    release_views(&v);
    if (state.failed || result == EXACT_NO_MEMORY) {
        Py_DECREF(offsets);
        return state.failed ? NULL : PyErr_NoMemory();
    }
    PyObject *answer = Py_BuildValue("iOLL", result, result == EXACT_SOLVED ? offsets : Py_None, (long long)num_nodes,
                                     (long long)work);
    Py_DECREF(offsets);
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

/* Places in one order: (pools, offsets) as bytes. */
static PyObject *place_order(const first_fit_problem *problem, const first_fit_pairs *pairs, const int32_t *order)
{
    Py_ssize_t n = problem->num_buffers;
    PyObject *pools = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(int32_t));
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(int64_t));
    PyObject *answer = NULL;
    if (pools != NULL && offsets != NULL) {
        int32_t *pool_cells = (int32_t *)(void *)PyBytes_AS_STRING(pools);
        int64_t *offset_cells = (int64_t *)(void *)PyBytes_AS_STRING(offsets);
        PyThreadState *thread = PyEval_SaveThread();
        int failed = first_fit_place(problem, pairs, order, pool_cells, offset_cells);
        PyEval_RestoreThread(thread);
        answer = failed ? PyErr_NoMemory() : PyTuple_Pack(2, pools, offsets);
    }
    Py_XDECREF(pools);
    Py_XDECREF(offsets);
    return answer;
}

static PyObject *native_first_fit(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *arrays, *capsule;
    int num_buffers, num_pools;
    if (!PyArg_ParseTuple(args, "iiOO!", &num_buffers, &num_pools, &capsule, &PyTuple_Type, &arrays))
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
    PyObject *answer = NULL;
    if (capsule == Py_None)
        capsule = find_pairs(&problem);
    else
        Py_INCREF(capsule);
    const first_fit_pairs *pairs = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, PAIRS_NAME);
    if (pairs != NULL) {
        PyObject *placed = place_order(&problem, pairs, v.view[13].buf);
        if (placed != NULL)
            answer = Py_BuildValue("OOO", capsule, PyTuple_GET_ITEM(placed, 0), PyTuple_GET_ITEM(placed, 1));
        Py_XDECREF(placed);
    }
    Py_XDECREF(capsule);
    release_views(&v);
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
