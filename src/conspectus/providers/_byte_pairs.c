/* One function: how many tokens of a byte-pair encoding a piece of text has. tokenizers.py does the same where this
   is not built. The pair of the lowest rank is joined first, of equal ones the leftmost. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

enum { LONGEST = 128 }; /* bytes of the longest token */
static const uint32_t NONE = UINT32_MAX;

typedef struct {
    uint32_t rank, at;
} Pair;

typedef struct {
    const char *bytes;
    PyObject *ranks;
    uint32_t *next, *before, *rank; /* by the first byte of a part: the next part, the one before, rank with the next */
    Pair *heap;
    Py_ssize_t size, heaped;
    int failed;
} Piece;

static int less(Pair a, Pair b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(Piece *piece, Pair pair)
{
    Py_ssize_t place = piece->heaped++;
    while (place > 0 && less(pair, piece->heap[(place - 1) / 2])) {
        piece->heap[place] = piece->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    piece->heap[place] = pair;
}

static Pair pop(Piece *piece)
{
    Pair first = piece->heap[0], last = piece->heap[--piece->heaped];
    Py_ssize_t place = 0, child;
    while ((child = 2 * place + 1) < piece->heaped) {
        child += child + 1 < piece->heaped && less(piece->heap[child + 1], piece->heap[child]);
        if (!less(piece->heap[child], last))
            break;
        piece->heap[place] = piece->heap[child];
        place = child;
    }
    piece->heap[place] = last;
    return first;
}

/* Find the rank of the part at a place joined with the next one, and remember it. */
static void look(Piece *piece, uint32_t at)
{
    uint32_t middle = piece->next[at];
    piece->rank[at] = NONE;
    if (piece->failed || middle >= piece->size || piece->next[middle] - at > LONGEST)
        return;
    PyObject *joined = PyBytes_FromStringAndSize(piece->bytes + at, piece->next[middle] - at);
    PyObject *found = joined ? PyDict_GetItemWithError(piece->ranks, joined) : NULL;
    Py_XDECREF(joined);
    if (found) {
        piece->rank[at] = (uint32_t)PyLong_AsUnsignedLong(found);
        push(piece, (Pair){piece->rank[at], at});
    }
    piece->failed = PyErr_Occurred() != NULL;
}

static Py_ssize_t join(Piece *piece)
{
    Py_ssize_t count = piece->size;
    for (uint32_t at = 0; at < piece->size; at++) {
        piece->next[at] = at + 1;
        piece->before[at] = at - 1;
    }
    piece->next[piece->size] = piece->size + 1;
    for (uint32_t at = 0; at + 1 < piece->size; at++)
        look(piece, at);
    while (piece->heaped && !piece->failed) {
        Pair pair = pop(piece);
        if (piece->rank[pair.at] != pair.rank)
            continue;
        uint32_t middle = piece->next[pair.at], end = piece->next[middle];
        piece->next[pair.at] = end;
        piece->before[end] = pair.at;
        piece->rank[middle] = NONE;
        count--;
        look(piece, pair.at);
        if (pair.at > 0)
            look(piece, piece->before[pair.at]);
    }
    return count;
}

PyDoc_STRVAR(count_doc, "count(piece: bytes, ranks: dict[bytes, int]) -> int");

static PyObject *count(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Piece piece = {0};
    if (!PyArg_ParseTuple(arguments, "y#O!", &piece.bytes, &piece.size, &PyDict_Type, &piece.ranks))
        return NULL;
    if (piece.size >= NONE / 4)
        return PyErr_Format(PyExc_OverflowError, "a piece of %zd bytes", piece.size);
    size_t places = (size_t)piece.size + 1;
    piece.next = malloc(3 * places * sizeof *piece.next);
    piece.heap = malloc(3 * places * sizeof *piece.heap);
    Py_ssize_t counted = 0;
    if (piece.next && piece.heap) {
        piece.before = piece.next + places;
        piece.rank = piece.before + places;
        counted = join(&piece);
    } else {
        PyErr_NoMemory();
    }
    free(piece.next);
    free(piece.heap);
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(counted);
}

static PyMethodDef methods[] = {{"count", count, METH_VARARGS, count_doc}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_byte_pairs", NULL, 0, methods, 0};

PyMODINIT_FUNC PyInit__byte_pairs(void)
{
    return PyModuleDef_Init(&definition);
}
