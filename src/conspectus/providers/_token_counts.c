/* One function: how many tokens of a byte-pair encoding a piece of text has. byte_pair_encoding.py does the same where
   this is not built. The pair of the lowest rank is joined first, of equal ones the leftmost. vocabulary.py tells what
   the table of ranks looks like. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 128 }; /* bytes of the longest token */
enum { RANK_BITS = 18, HEADER = 2 };
static const uint32_t NONE = UINT32_MAX;
static uint32_t remainders[256]; /* of CRC-32, by byte */

typedef struct {
    const uint32_t *slots, *offsets;
    const char *bytes;
    uint32_t count, mask;
    size_t size; /* of the bytes */
} Ranks;

typedef struct {
    uint32_t rank, at;
} Pair;

typedef struct {
    const char *bytes;
    Ranks ranks;
    uint32_t *next, *before, *rank; /* by the first byte of a part: the next part, the one before, rank with the next */
    Pair *heap;
    Py_ssize_t size, heaped;
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

static void fill_remainders(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder & 1 ? remainder >> 1 ^ 0xedb88320u : remainder >> 1;
        remainders[byte] = remainder;
    }
}

/* The table as it lies in memory; 0 if it is cut short. Its numbers are little-endian, as the machine's must be. */
static int ranks_of(const Py_buffer *table, Ranks *ranks)
{
    const uint32_t *numbers = table->buf;
    if (table->len < 4 * HEADER) return 0;
    uint32_t count = numbers[0], slots = numbers[1];
    uint64_t first_byte = 4 * (HEADER + (uint64_t)slots + count + 1);
    if (!slots || slots & (slots - 1) || count >= slots || first_byte > (uint64_t)table->len) return 0;
    *ranks = (Ranks){numbers + HEADER, numbers + HEADER + slots, (const char *)table->buf + first_byte, count,
                     slots - 1, (size_t)(table->len - first_byte)};
    return 1;
}

static uint32_t rank_of(const Ranks *ranks, const char *token, uint32_t length)
{
    uint32_t checksum = NONE, number;
    for (uint32_t at = 0; at < length; at++)
        checksum = checksum >> 8 ^ remainders[(checksum ^ (unsigned char)token[at]) & 255];
    checksum = ~checksum;
    for (uint32_t step = 0; step < ranks->mask; step++) {
        if (!(number = ranks->slots[(checksum + step) & ranks->mask])) return NONE;
        uint32_t rank = (number & ((1u << RANK_BITS) - 1)) - 1;
        if ((number ^ checksum) >> RANK_BITS || rank >= ranks->count) continue;
        uint32_t start = ranks->offsets[rank], end = ranks->offsets[rank + 1];
        if (end <= ranks->size && start <= end && end - start == length && !memcmp(ranks->bytes + start, token, length))
            return rank;
    }
    return NONE;
}

/* Find the rank of the part at a place joined with the next one, and remember it. */
static void look(Piece *piece, uint32_t at)
{
    uint32_t middle = piece->next[at];
    piece->rank[at] = NONE;
    if (middle >= piece->size || piece->next[middle] - at > LONGEST)
        return;
    piece->rank[at] = rank_of(&piece->ranks, piece->bytes + at, piece->next[middle] - at);
    if (piece->rank[at] != NONE)
        push(piece, (Pair){piece->rank[at], at});
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
    while (piece->heaped) {
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

PyDoc_STRVAR(count_doc, "count(piece: bytes, table: Buffer) -> int");

static PyObject *counted(Piece *piece)
{
    size_t places = (size_t)piece->size + 1;
    piece->next = malloc(3 * places * sizeof *piece->next);
    piece->heap = malloc(3 * places * sizeof *piece->heap);
    Py_ssize_t tokens = -1;
    if (piece->next && piece->heap) {
        piece->before = piece->next + places;
        piece->rank = piece->before + places;
        tokens = join(piece);
    }
    free(piece->next);
    free(piece->heap);
    return tokens < 0 ? PyErr_NoMemory() : PyLong_FromSsize_t(tokens);
}

static PyObject *count(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Piece piece = {0};
    Py_buffer table;
    if (!PyArg_ParseTuple(arguments, "y#y*", &piece.bytes, &piece.size, &table))
        return NULL;
    PyObject *tokens;
    if (piece.size >= NONE / 4)
        tokens = PyErr_Format(PyExc_OverflowError, "a piece of %zd bytes", piece.size);
    else if (!ranks_of(&table, &piece.ranks))
        tokens = PyErr_Format(PyExc_ValueError, "the table of ranks is cut short");
    else
        tokens = counted(&piece);
    PyBuffer_Release(&table);
    return tokens;
}

static PyMethodDef methods[] = {{"count", count, METH_VARARGS, count_doc}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_token_counts", NULL, 0, methods, 0};

PyMODINIT_FUNC PyInit__token_counts(void)
{
    fill_remainders();
    return PyModuleDef_Init(&definition);
}
