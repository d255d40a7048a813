/* The kernels of a search in a segment; kernels.py says what each does, and does it where this is not built.

   No function trusts what a file holds: an offset or row out of bounds raises IndexError. Scores are float64,
   one operation after the other, so that they equal NumPy's to the last bit: do not build with -ffast-math. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2,f16c")))
#define HAS_WIDE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
#define EIGHT(halves) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(halves)))
#define INLINE static inline __attribute__((always_inline))
#else
#define WIDE
#define HAS_WIDE 0
#define leaf_sums_wide leaf_sums
#define INLINE static inline
#endif

#ifdef __GNUC__
#define PREFETCH __builtin_prefetch
#else
#define PREFETCH(address)
#endif

enum { WINDOW = 8192, BATCH = 128, LANES = 8, LEAF = 128, SOME = 4, LOOKUP = 8 };
enum { DONE = 0, NO_MEMORY = -1, OUT_OF_BOUNDS = -2 };
static const double SLACK = 1e-4; /* what single precision may lose, on either side of a threshold */

typedef struct {
    const uint32_t *rows, *lengths;
    const void *counts;
    Py_ssize_t size, width; /* rows of the segment, bytes of a count */
    double base, slope;     /* the norm of a row is base + slope * length */
    const uint8_t *allowed; /* one byte a row; NULL is every row */
} Text;

typedef struct {
    Py_ssize_t at, end;
    double weight, most;
} Term;

typedef struct {
    int64_t *rows;
    double *scores;
    Py_ssize_t count, room, limit, heaped;
    float *heap; /* the best scores so far, the least of them first */
    double threshold;
} Leaders;

typedef struct {
    float norms[WINDOW + 1], scores[WINDOW + 1]; /* the last of each is for rows that are elsewhere */
    uint32_t places[WINDOW];
} Window;

INLINE uint32_t count_at(const Text *text, Py_ssize_t place)
{
    return text->width == 1 ? ((const uint8_t *)text->counts)[place] : ((const uint16_t *)text->counts)[place];
}

INLINE double norm_of(const Text *text, int64_t row)
{
    return text->base + text->slope * (double)text->lengths[row];
}

/* Exact BM25 of sorted rows. Places of some rows are searched at once, so that the memory is never waited for. */
INLINE void exact(const Text *text, const Term *terms, Py_ssize_t count, const int64_t *rows, Py_ssize_t wanted,
                  double *scores)
{
    for (Py_ssize_t i = 0; i < wanted; i++) scores[i] = 0.0;
    for (Py_ssize_t t = 0; t < count; t++) {
        const uint32_t *posting = text->rows + terms[t].at;
        uint32_t size = (uint32_t)(terms[t].end - terms[t].at);
        if (!size) continue;
        for (Py_ssize_t i = 0; i < wanted; i += LANES) {
            uint32_t place[LANES] = {0}, row[LANES];
            for (int j = 0; j < LANES; j++) row[j] = (uint32_t)rows[i + j < wanted ? i + j : wanted - 1];
            for (uint32_t rest = size; rest > 1;) {
                uint32_t half = rest / 2;
                for (int j = 0; j < LANES; j++) place[j] += posting[place[j] + half - 1] < row[j] ? half : 0;
                rest -= half;
            }
            for (int j = 0; j < LANES && i + j < wanted; j++) {
                if (posting[place[j]] != row[j]) continue;
                double found = count_at(text, terms[t].at + place[j]);
                scores[i + j] += terms[t].weight * found / (found + norm_of(text, rows[i + j]));
            }
        }
    }
}

WIDE static void exact_wide(const Text *x, const Term *t, Py_ssize_t c, const int64_t *r, Py_ssize_t n, double *s)
{
    exact(x, t, c, r, n, s);
}

static void exact_plain(const Text *x, const Term *t, Py_ssize_t c, const int64_t *r, Py_ssize_t n, double *s)
{
    exact(x, t, c, r, n, s);
}

static void (*exact_scores)(const Text *, const Term *, Py_ssize_t, const int64_t *, Py_ssize_t, double *);

/* The first place in a posting, from `at` on, whose row is `row` or later. */
INLINE Py_ssize_t reached(const uint32_t *rows, Py_ssize_t at, Py_ssize_t end, int64_t row)
{
    Py_ssize_t step = 1, low = at;
    while (at < end && rows[at] < row) {
        low = at + 1;
        at += step;
        step *= 2;
    }
    Py_ssize_t high = at < end ? at : end;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (rows[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Add a term to the scores of the rows of a window. Tells whether a row is elsewhere, as in a damaged file. */
INLINE int gained(const Text *text, const Term *term, Py_ssize_t end, int64_t start, uint32_t span,
                   const float *norms, float *scores)
{
    const float weight = (float)term->weight;
    uint32_t furthest = 0;
    for (Py_ssize_t first = term->at; first < end; first += BATCH) {
        const uint32_t *rows = text->rows + first;
        int some = end - first < BATCH ? (int)(end - first) : BATCH;
        uint32_t place[BATCH];
        float count[BATCH], share[BATCH];
        for (int i = 0; i < some; i++) {
            uint32_t inside = rows[i] - (uint32_t)start;
            place[i] = inside < span ? inside : WINDOW;
            furthest = place[i] > furthest ? place[i] : furthest;
        }
        if (text->width == 1)
            for (int i = 0; i < some; i++) count[i] = ((const uint8_t *)text->counts)[first + i];
        else
            for (int i = 0; i < some; i++) count[i] = ((const uint16_t *)text->counts)[first + i];
        for (int i = 0; i < some; i++) share[i] = weight * count[i] / (count[i] + norms[place[i]]);
        for (int i = 0; i < some; i++) scores[place[i]] += share[i];
    }
    return furthest == WINDOW;
}

INLINE void sift(float *heap, Py_ssize_t size, float value)
{
    Py_ssize_t at = 0;
    for (Py_ssize_t child = 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

INLINE void rise(float *heap, Py_ssize_t at, float value)
{
    for (; at && heap[(at - 1) / 2] > value; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = value;
}

static void drop_losers(Leaders *leaders)
{
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < leaders->count; i++) {
        if (leaders->scores[i] < leaders->threshold) continue;
        leaders->rows[kept] = leaders->rows[i];
        leaders->scores[kept++] = leaders->scores[i];
    }
    leaders->count = kept;
}

INLINE int lead(Leaders *leaders, int64_t row, double score)
{
    if (leaders->count == leaders->room) {
        drop_losers(leaders);
        if (2 * leaders->count > leaders->room) {
            int64_t *rows = realloc(leaders->rows, 2 * leaders->room * sizeof *rows);
            if (rows) leaders->rows = rows;
            double *scores = realloc(leaders->scores, 2 * leaders->room * sizeof *scores);
            if (scores) leaders->scores = scores;
            if (!rows || !scores) return NO_MEMORY;
            leaders->room *= 2;
        }
    }
    leaders->rows[leaders->count] = row;
    leaders->scores[leaders->count++] = score;
    if (leaders->heaped < leaders->limit) rise(leaders->heap, leaders->heaped++, (float)score);
    else if (score > leaders->heap[0]) sift(leaders->heap, leaders->limit, (float)score);
    if (leaders->heaped == leaders->limit) leaders->threshold = leaders->heap[0] * (1.0 - SLACK);
    return 0;
}

/* What the terms before `many`, of which the last gains the most, add to a score; or less than the threshold. */
INLINE double completed(const Text *text, Term *terms, Py_ssize_t many, double rest, int64_t row, double score,
                        double threshold)
{
    while (many--) {
        Term *term = terms + many;
        if (score + rest < threshold) return -1.0;
        rest -= term->most * (1.0 + SLACK);
        term->at = reached(text->rows, term->at, term->end, row);
        if (term->at == term->end || text->rows[term->at] != row) continue;
        double count = count_at(text, term->at);
        score += term->weight * count / (count + norm_of(text, row));
    }
    return score;
}

/* Add the postings of a window, by terms from `first` on; their norms are there once `gaining` is not 0. */
INLINE int gained_by(const Text *text, Term *terms, Py_ssize_t first, Py_ssize_t count, int64_t start, uint32_t span,
                     Window *window, Py_ssize_t *gaining)
{
    for (Py_ssize_t t = first; t < count; t++) {
        terms[t].at = reached(text->rows, terms[t].at, terms[t].end, start);
        Py_ssize_t end = reached(text->rows, terms[t].at, terms[t].end, start + span);
        if (end == terms[t].at) continue;
        if (!*gaining) {
            for (uint32_t i = 0; i < span; i++)
                window->norms[i] = (float)text->base + (float)text->slope * (float)text->lengths[start + i];
            memset(window->scores, 0, sizeof window->scores);
        }
        *gaining += end - terms[t].at;
        if (gained(text, terms + t, end, start, span, window->norms, window->scores)) return OUT_OF_BOUNDS;
        terms[t].at = end;
    }
    return DONE;
}

/* The places in a window with a score of `least` or more. */
INLINE Py_ssize_t placed(Window *window, uint32_t span, float least)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t first = 0; first < span; first += 4 * LANES) {
        const float *scores = window->scores + first;
        int any = 0;
        for (int j = 0; j < 4 * LANES; j++) any |= scores[j] >= least;
        for (int j = 0; any && j < 4 * LANES; j++) {
            window->places[count] = (uint32_t)(first + j);
            count += scores[j] >= least;
        }
    }
    return count;
}

/* MaxScore over windows: the terms that cannot lift a row among the best by themselves, the first `few`, are looked
   up only for rows that they could lift, where that is less work than to add them up. `terms` are sorted by what
   they gain at most. */
INLINE int lead_window(const Text *text, Term *terms, Py_ssize_t count, int64_t start, Leaders *leaders,
                       Window *window)
{
    uint32_t span = text->size - start < WINDOW ? (uint32_t)(text->size - start) : WINDOW;
    double rest = 0.0;
    Py_ssize_t few = 0, gaining = 0, postings = 0;
    while (few < count && rest + terms[few].most * (1.0 + SLACK) < leaders->threshold) {
        postings += (terms[few].end - terms[few].at) / ((text->size - start) / span + 1);
        rest += terms[few++].most * (1.0 + SLACK);
    }
    if (gained_by(text, terms, few, count, start, span, window, &gaining)) return OUT_OF_BOUNDS;
    if (!gaining) return DONE;
    float least = (float)(leaders->threshold - rest);
    Py_ssize_t found = placed(window, span, least > FLT_MIN ? least : FLT_MIN);
    if (LOOKUP * found * few > postings) {
        if (gained_by(text, terms, 0, few, start, span, window, &gaining)) return OUT_OF_BOUNDS;
        few = 0;
        rest = 0.0;
        least = (float)leaders->threshold;
        found = placed(window, span, least > FLT_MIN ? least : FLT_MIN);
    }
    for (Py_ssize_t i = 0; i < found; i++) {
        int64_t row = start + window->places[i];
        if (text->allowed && !text->allowed[row]) continue;
        double score = window->scores[window->places[i]];
        if (score + rest < leaders->threshold) continue;
        score = completed(text, terms, few, rest, row, score, leaders->threshold);
        if (score >= leaders->threshold && lead(leaders, row, score)) return NO_MEMORY;
    }
    return DONE;
}

WIDE static int window_wide(const Text *x, Term *t, Py_ssize_t c, int64_t s, Leaders *l, Window *w)
{
    return lead_window(x, t, c, s, l, w);
}

static int window_plain(const Text *x, Term *t, Py_ssize_t c, int64_t s, Leaders *l, Window *w)
{
    return lead_window(x, t, c, s, l, w);
}

static int (*lead_in_window)(const Text *, Term *, Py_ssize_t, int64_t, Leaders *, Window *);

static int by_most(const void *a, const void *b)
{
    double first = ((const Term *)a)->most, second = ((const Term *)b)->most;
    return (first > second) - (first < second);
}

/* The least of the `limit` greatest values (1 <= limit <= count), which are reordered. */
static double least_of_best(double *values, Py_ssize_t count, Py_ssize_t limit)
{
    Py_ssize_t low = 0, high = count - 1, wanted = limit - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        Py_ssize_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i > j) break;
            double other = values[i];
            values[i++] = values[j];
            values[j--] = other;
        }
        if (wanted <= j) high = j;
        else if (wanted >= i) low = i;
        else break;
    }
    return values[wanted];
}

/* Keep the best `limit` of sorted rows, and of equal ones the first. Returns how many, or NO_MEMORY. */
static Py_ssize_t keep_best(int64_t *rows, double *scores, Py_ssize_t count, Py_ssize_t limit)
{
    if (count <= limit) return count;
    if (limit < 1) return 0;
    double *values = malloc(count * sizeof *values);
    if (!values) return NO_MEMORY;
    memcpy(values, scores, count * sizeof *values);
    double least = least_of_best(values, count, limit);
    free(values);
    Py_ssize_t kept = 0, equal = limit;
    for (Py_ssize_t i = 0; i < count; i++) equal -= scores[i] > least;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (scores[i] < least || (scores[i] == least && equal-- <= 0)) continue;
        rows[kept] = rows[i];
        scores[kept++] = scores[i];
    }
    return kept;
}

/* Rows of a segment that are among the best of its words, with their exact scores. */
static int lead_all(const Text *text, const Term *terms, Py_ssize_t count, Leaders *leaders)
{
    Term *sorted = malloc((count + 1) * sizeof *sorted);
    Window *window = calloc(1, sizeof *window);
    int failed = sorted && window ? DONE : NO_MEMORY;
    if (!failed) {
        memcpy(sorted, terms, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_most);
        window->norms[WINDOW] = 1.0f;
        for (int64_t start = 0; start < text->size && !failed; start += WINDOW)
            failed = lead_in_window(text, sorted, count, start, leaders, window);
    }
    free(sorted);
    free(window);
    return failed;
}

static int in_bounds(const int64_t *rows, Py_ssize_t count, Py_ssize_t size)
{
    int outside = 0;
    for (Py_ssize_t i = 0; i < count; i++) outside |= rows[i] < 0 || rows[i] >= size;
    return !outside;
}


/* The arguments of `words` that are buffers; see kernels.py. */
enum { ROWS, COUNTS, LENGTHS, STARTS, POSITIONS, WEIGHTS, BOUNDS, CHOSEN, ALLOWED, BUFFERS };

static Py_ssize_t terms_of(const Py_buffer *given, Term *terms)
{
    const int64_t *starts = given[STARTS].buf, *positions = given[POSITIONS].buf;
    const uint32_t *rows = given[ROWS].buf;
    const double *weights = given[WEIGHTS].buf, *bounds = given[BOUNDS].buf;
    Py_ssize_t known = given[STARTS].len / 8 - 1, postings = given[ROWS].len / 4, count = 0;
    for (Py_ssize_t t = 0; t < given[POSITIONS].len / 8; t++) {
        int64_t position = positions[t];
        if (position < 0) continue;
        if (position >= known) return OUT_OF_BOUNDS;
        int64_t first = starts[position], end = starts[position + 1];
        if (first < 0 || end < first || end > postings) return OUT_OF_BOUNDS;
        if (first < end && rows[end - 1] >= given[LENGTHS].len / 4) return OUT_OF_BOUNDS;
        terms[count++] = (Term){first, end, weights[t], weights[t] * bounds[t]};
    }
    return count;
}

static int scored_words(const Text *text, const Term *terms, Py_ssize_t count, const Py_buffer *chosen,
                        Leaders *leaders)
{
    if (chosen->obj) {
        leaders->count = chosen->len / 8;
        memcpy(leaders->rows, chosen->buf, chosen->len);
        if (!in_bounds(leaders->rows, leaders->count, text->size)) return OUT_OF_BOUNDS;
    } else if (leaders->limit > 0) {
        int failed = lead_all(text, terms, count, leaders);
        if (failed) return failed;
        drop_losers(leaders);
    }
    exact_scores(text, terms, count, leaders->rows, leaders->count, leaders->scores);
    if (leaders->limit < 0) return DONE;
    Py_ssize_t positive = 0;
    for (Py_ssize_t i = 0; i < leaders->count; i++) {
        if (!(leaders->scores[i] > 0.0)) continue;
        leaders->rows[positive] = leaders->rows[i];
        leaders->scores[positive++] = leaders->scores[i];
    }
    leaders->count = keep_best(leaders->rows, leaders->scores, positive, leaders->limit);
    return leaders->count < 0 ? NO_MEMORY : DONE;
}

static int words_of(const Py_buffer *given, double base, double slope, Leaders *leaders)
{
    Py_ssize_t postings = given[ROWS].len / 4, width = postings ? given[COUNTS].len / postings : 1;
    Py_ssize_t asked = given[POSITIONS].len / 8, size = given[LENGTHS].len / 4;
    if ((width != 1 && width != 2) || given[WEIGHTS].len / 8 != asked || given[BOUNDS].len / 8 != asked)
        return OUT_OF_BOUNDS;
    if (given[ALLOWED].obj && given[ALLOWED].len != size) return OUT_OF_BOUNDS;
    Text text = {given[ROWS].buf, given[LENGTHS].buf, given[COUNTS].buf, size, width, base, slope,
                 given[ALLOWED].obj ? given[ALLOWED].buf : NULL};
    Py_ssize_t ranked = leaders->limit < size ? leaders->limit : size;
    leaders->room = given[CHOSEN].obj ? given[CHOSEN].len / 8 + 1 : 2 * (ranked > 0 ? ranked : 0) + WINDOW;
    leaders->rows = malloc(leaders->room * sizeof *leaders->rows);
    leaders->scores = malloc(leaders->room * sizeof *leaders->scores);
    leaders->heap = malloc((ranked > 0 ? ranked + 1 : 1) * sizeof *leaders->heap);
    Term *terms = malloc((asked + 1) * sizeof *terms);
    int failed = !leaders->rows || !leaders->scores || !leaders->heap || !terms ? NO_MEMORY : DONE;
    Py_ssize_t count = failed ? 0 : terms_of(given, terms);
    if (!failed) failed = count < 0 ? OUT_OF_BOUNDS : scored_words(&text, terms, count, given + CHOSEN, leaders);
    free(terms);
    free(leaders->heap);
    return failed;
}

static PyObject *raised(int failed)
{
    if (failed == NO_MEMORY) return PyErr_NoMemory();
    PyErr_SetString(PyExc_IndexError, "a row or an offset is out of bounds");
    return NULL;
}

static PyObject *pair(const int64_t *rows, const double *scores, Py_ssize_t count)
{
    return Py_BuildValue("(y#y#)", (const char *)rows, count * 8, (const char *)scores, count * 8);
}

static PyObject *words(PyObject *module, PyObject *args)
{
    Py_buffer given[BUFFERS] = {{0}};
    double base, slope;
    Leaders leaders = {0};
    if (!PyArg_ParseTuple(args, "(y*y*y*y*)(y*y*y*)(dd)z*z*n", given, given + 1, given + 2, given + 3, given + 4,
                          given + 5, given + 6, &base, &slope, given + 7, given + 8, &leaders.limit))
        return NULL;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = words_of(given, base, slope, &leaders);
    Py_END_ALLOW_THREADS
    PyObject *found = failed ? raised(failed) : pair(leaders.rows, leaders.scores, leaders.count);
    free(leaders.rows);
    free(leaders.scores);
    for (int i = 0; i < BUFFERS; i++) PyBuffer_Release(given + i);
    return found;
}

/* The order in which NumPy adds a row up: leaves of at most 128 products, and how many sums to add after each. */
typedef struct {
    Py_ssize_t size;
    int sums;
} Leaf;

static Leaf *planned(Leaf *plan, Py_ssize_t size)
{
    if (size <= LEAF) {
        *plan = (Leaf){size, 0};
        return plan + 1;
    }
    Py_ssize_t half = size / 2 - size / 2 % LANES;
    plan = planned(planned(plan, half), size - half);
    plan[-1].sums++;
    return plan;
}

/* A half-precision number: its sign is spread over bits that it does not have and taken from there. */
INLINE float single(int16_t half)
{
    uint32_t bits = ((uint32_t)(int32_t)half << 13) & ~0x70000000u;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value * 0x1p112f;
}

INLINE float sum_of(const float *parts)
{
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

/* The sums of one leaf of some rows; each row is added up in the same order, whatever is added up beside it. */
INLINE void leaf_sums(const int16_t *const *rows, const float *query, Py_ssize_t size, float *sums)
{
    for (int r = 0; r < SOME; r++) {
        const int16_t *row = rows[r];
        Py_ssize_t i = 0;
        sums[r] = 0.0f;
        if (size >= LANES) {
            float parts[LANES];
            for (int j = 0; j < LANES; j++) parts[j] = single(row[j]) * query[j];
            for (i = LANES; i < size - size % LANES; i += LANES)
                for (int j = 0; j < LANES; j++) parts[j] += single(row[i + j]) * query[i + j];
            sums[r] = sum_of(parts);
        }
        for (; i < size; i++) sums[r] += single(row[i]) * query[i];
    }
}

#ifdef EIGHT
WIDE static void leaf_sums_wide(const int16_t *const *rows, const float *query, Py_ssize_t size, float *sums)
{
    Py_ssize_t i = 0;
    if (size >= LANES) {
        __m256 parts[SOME];
        for (int r = 0; r < SOME; r++) parts[r] = _mm256_mul_ps(EIGHT(rows[r]), _mm256_loadu_ps(query));
        for (i = LANES; i < size - size % LANES; i += LANES) {
            __m256 asked = _mm256_loadu_ps(query + i);
            for (int r = 0; r < SOME; r++)
                parts[r] = _mm256_add_ps(parts[r], _mm256_mul_ps(EIGHT(rows[r] + i), asked));
        }
        for (int r = 0; r < SOME; r++) sums[r] = sum_of((const float *)(parts + r));
    } else
        memset(sums, 0, SOME * sizeof *sums);
    for (; i < size; i++)
        for (int r = 0; r < SOME; r++) sums[r] += single(rows[r][i]) * query[i];
}
#endif

typedef void (*LeafSums)(const int16_t *const *, const float *, Py_ssize_t, float *);

INLINE void products(const int16_t *vectors, const float *query, Py_ssize_t size, const Leaf *plan, Py_ssize_t leaves,
                     const int64_t *rows, Py_ssize_t count, double *scores, LeafSums sums_of)
{
    for (Py_ssize_t i = 0; i < count; i += SOME) {
        const int16_t *some[SOME];
        for (int r = 0; r < SOME; r++) {
            some[r] = vectors + rows[i + r < count ? i + r : count - 1] * size;
            if (i + r + SOME < count)
                for (Py_ssize_t at = 0; at < size; at += 32) PREFETCH(vectors + rows[i + r + SOME] * size + at);
        }
        float sums[64][SOME];
        int held = 0;
        for (Py_ssize_t leaf = 0; leaf < leaves; leaf++) {
            sums_of(some, query, plan[leaf].size, sums[held++]);
            for (int r = 0; r < SOME; r++) some[r] += plan[leaf].size;
            query += plan[leaf].size;
            for (int n = plan[leaf].sums; n; n--, held--)
                for (int r = 0; r < SOME; r++) sums[held - 2][r] += sums[held - 1][r];
        }
        query -= size;
        for (int r = 0; r < SOME && i + r < count; r++) scores[i + r] = sums[0][r];
    }
}

WIDE static void products_wide(const int16_t *v, const float *q, Py_ssize_t z, const Leaf *p, Py_ssize_t l,
                               const int64_t *r, Py_ssize_t n, double *s)
{
    products(v, q, z, p, l, r, n, s, leaf_sums_wide);
}

static void products_plain(const int16_t *v, const float *q, Py_ssize_t z, const Leaf *p, Py_ssize_t l,
                           const int64_t *r, Py_ssize_t n, double *s)
{
    products(v, q, z, p, l, r, n, s, leaf_sums);
}

static void (*all_products)(const int16_t *, const float *, Py_ssize_t, const Leaf *, Py_ssize_t, const int64_t *,
                            Py_ssize_t, double *);

/* Scores of the rows, of which `limit` are kept (all where it is negative). Returns how many, or what failed. */
static Py_ssize_t cosines_of(const Py_buffer *vectors, const Py_buffer *query, int64_t *rows, double *scores,
                             Py_ssize_t count, Py_ssize_t limit)
{
    Py_ssize_t size = query->len / 4;
    if (!size || !in_bounds(rows, count, vectors->len / 2 / size)) return OUT_OF_BOUNDS;
    Leaf *plan = malloc((size / (LEAF / 4) + 1) * sizeof *plan);
    if (!plan) return NO_MEMORY;
    all_products(vectors->buf, query->buf, size, plan, planned(plan, size) - plan, rows, count, scores);
    free(plan);
    return limit < 0 ? count : keep_best(rows, scores, count, limit);
}

static PyObject *cosines(PyObject *module, PyObject *args)
{
    Py_buffer vectors, query, chosen;
    Py_ssize_t limit, count;
    if (!PyArg_ParseTuple(args, "y*y*y*n", &vectors, &query, &chosen, &limit)) return NULL;
    int64_t *rows = malloc(chosen.len + 8);
    double *scores = malloc(chosen.len + 8);
    Py_BEGIN_ALLOW_THREADS
    count = NO_MEMORY;
    if (rows && scores) {
        memcpy(rows, chosen.buf, chosen.len);
        count = cosines_of(&vectors, &query, rows, scores, chosen.len / 8, limit);
    }
    Py_END_ALLOW_THREADS
    PyObject *found = count < 0 ? raised((int)count) : pair(rows, scores, count);
    free(rows);
    free(scores);
    PyBuffer_Release(&vectors);
    PyBuffer_Release(&query);
    PyBuffer_Release(&chosen);
    return found;
}

static int64_t place_of(const char *blob, Py_ssize_t size, const int64_t *offsets, Py_ssize_t count, const char *name,
                        Py_ssize_t length)
{
    Py_ssize_t low = 0, high = count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        int64_t first = offsets[middle], end = offsets[middle + 1];
        if (first < 0 || end < first || end > size) return OUT_OF_BOUNDS;
        int64_t common = end - first < length ? end - first : length;
        int order = memcmp(blob + first, name, common);
        if (!order) order = (end - first > length) - (end - first < length);
        if (!order) return middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

static PyObject *positions(PyObject *module, PyObject *args)
{
    Py_buffer blob, offsets;
    PyObject *names, *found;
    if (!PyArg_ParseTuple(args, "y*y*O!", &blob, &offsets, &PyTuple_Type, &names)) return NULL;
    Py_ssize_t count = PyTuple_Size(names), known = offsets.len / 8 - 1, i = 0;
    int64_t *places = malloc(8 * (count + 1));
    for (; places && i < count; i++) {
        char *name;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(names, i), &name, &length)) break;
        places[i] = place_of(blob.buf, blob.len, offsets.buf, known, name, length);
        if (places[i] == OUT_OF_BOUNDS) break;
    }
    if (places && i == count) found = PyBytes_FromStringAndSize((const char *)places, 8 * count);
    else found = PyErr_Occurred() ? NULL : raised(places ? OUT_OF_BOUNDS : NO_MEMORY);
    free(places);
    PyBuffer_Release(&blob);
    PyBuffer_Release(&offsets);
    return found;
}

/* How many of some rows each posting has. Both are sorted. */
static int held(const Py_buffer *given, int64_t *counts)
{
    const uint32_t *postings = given[0].buf, *rows = given[3].buf;
    const int64_t *starts = given[1].buf, *positions = given[2].buf;
    Py_ssize_t size = given[0].len / 4, known = given[1].len / 8 - 1, wanted = given[3].len / 4;
    for (Py_ssize_t t = 0; t < given[2].len / 8; t++) {
        counts[t] = 0;
        if (positions[t] < 0) continue;
        if (positions[t] >= known) return OUT_OF_BOUNDS;
        int64_t at = starts[positions[t]], end = starts[positions[t] + 1];
        if (at < 0 || at > end || end > size) return OUT_OF_BOUNDS;
        for (Py_ssize_t i = 0; i < wanted && (at = reached(postings, at, end, rows[i])) < end;) {
            counts[t] += postings[at] == rows[i];
            i = reached(rows, i + 1, wanted, postings[at]);
        }
    }
    return DONE;
}

static PyObject *documents(PyObject *module, PyObject *args)
{
    Py_buffer given[4] = {{0}};
    if (!PyArg_ParseTuple(args, "y*y*y*y*", given, given + 1, given + 2, given + 3)) return NULL;
    int64_t *counts = malloc(given[2].len + 8);
    int failed = counts ? held(given, counts) : NO_MEMORY;
    PyObject *found = failed ? raised(failed) : PyBytes_FromStringAndSize((const char *)counts, given[2].len);
    free(counts);
    for (int i = 0; i < 4; i++) PyBuffer_Release(given + i);
    return found;
}

static PyMethodDef methods[] = {
    {"documents", documents, METH_VARARGS, NULL},
    {"positions", positions, METH_VARARGS, NULL},
    {"words", words, METH_VARARGS, NULL},
    {"cosines", cosines, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void)
{
    exact_scores = HAS_WIDE ? exact_wide : exact_plain;
    lead_in_window = HAS_WIDE ? window_wide : window_plain;
    all_products = HAS_WIDE ? products_wide : products_plain;
    return PyModule_Create(&definition);
}
