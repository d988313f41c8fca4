/* Lays out rows of numbers as leaves of a SQLite table, without Python objects.

   `leaves` writes what `profsvc.store.ingest.inserts.sqlite_pages` describes and makes with NumPy, byte by byte.

   Rules of this file: every read lies in a column, whose size was compared with the number of rows; every write lies in
   the buffer for the pages or in that for the last rows, both of which are checked before each page; the interpreter's
   lock is released meanwhile. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define INTERFACE 1
#define PAGE_BYTES 4096
#define LEAF 13
#define LEAF_HEAD 8
#define POINTER 2
#define WORD_BYTES 8
#define MAX_COLUMNS 64
#define MAX_RECORD 0x7F /* bytes of a record whose size takes one byte */
#define MAX_ROW_ID (((int64_t)1 << 56) - 1)
#define MAX_CELLS ((PAGE_BYTES - LEAF_HEAD) / (4 + POINTER)) /* a cell has at least 4 bytes */
#define MAX_INTEGER_IN_DOUBLE 140737488355328.0 /* 2^47 */

enum { NULL_TYPE = 0, LONGEST_INTEGER = 6, REAL_TYPE = 7, ZERO = 8 };

static const uint8_t SIZES[10] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

typedef struct {
    const int64_t *integers;
    const double *reals;
    const uint8_t *missing; /* NULL if no value is */
    Py_buffer buffers[2];
} Column;

typedef struct {
    const Column *column;
    int columns;
    int64_t first_row;
    Py_ssize_t rows;
    uint8_t *pages;
    Py_ssize_t most_pages;
    int64_t *last_rows;
} Job;

/* The rows of one page, each with the values of its columns. */
typedef struct {
    uint8_t types[MAX_CELLS * MAX_COLUMNS];
    uint64_t words[MAX_CELLS * MAX_COLUMNS];
    uint8_t sizes[MAX_CELLS]; /* of the records */
} Cells;

static uint8_t type_of(int64_t value)
{
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    if (magnitude < 2 && value >= 0)
        return (uint8_t)(ZERO + value);
    if (magnitude < (uint64_t)1 << 7)
        return 1;
    if (magnitude < (uint64_t)1 << 15)
        return 2;
    if (magnitude < (uint64_t)1 << 23)
        return 3;
    if (magnitude < (uint64_t)1 << 31)
        return 4;
    return magnitude < (uint64_t)1 << 47 ? 5 : LONGEST_INTEGER;
}

/* Returns the type of a value, and its bytes as the lowest of a word. */
static uint8_t encode(const Column *column, Py_ssize_t row, uint64_t *word)
{
    int64_t value;
    *word = 0;
    if (column->missing && column->missing[row])
        return NULL_TYPE;
    if (column->reals) {
        double real = column->reals[row];
        if (real != real)
            return NULL_TYPE;
        memcpy(word, &real, sizeof real);
        if (!(real < MAX_INTEGER_IN_DOUBLE && real > -MAX_INTEGER_IN_DOUBLE))
            return REAL_TYPE;
        value = (int64_t)real;
        if ((double)value != real || (value == 0 && *word))
            return REAL_TYPE; /* not whole, or a negative zero */
    } else
        value = column->integers[row];
    *word = (uint64_t)value;
    return type_of(value);
}

static int id_bytes(int64_t id)
{
    int bytes = 1;
    while (id >>= 7)
        bytes++;
    return bytes;
}

/* Writes the last `size` bytes of a word, the highest first, and up to 7 bytes behind them. */
static uint8_t *put(uint8_t *place, uint64_t word, int size)
{
    int shift;
    if (!size)
        return place;
    word <<= 8 * (WORD_BYTES - size);
#if defined(__BYTE_ORDER__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    (void)shift;
    word = __builtin_bswap64(word);
    memcpy(place, &word, WORD_BYTES);
#else
    for (shift = 0; shift < size; shift++)
        place[shift] = (uint8_t)(word >> (8 * (WORD_BYTES - 1 - shift)));
#endif
    return place + size;
}

/* Encodes the rows that fill a page; returns how many there are, 0 if the first has too long a record. */
static int fill(const Job *job, Py_ssize_t row, Cells *cells, int *content)
{
    int count = 0, used = LEAF_HEAD, column, value = 0;
    *content = 0;
    for (; row < job->rows && count < MAX_CELLS; row++, count++) {
        int record = 2 + job->columns, cell;
        for (column = 0; column < job->columns; column++, value++) {
            cells->types[value] = encode(&job->column[column], row, &cells->words[value]);
            record += SIZES[cells->types[value]];
        }
        if (record > MAX_RECORD)
            return 0;
        cell = 1 + id_bytes(job->first_row + row) + record;
        if (used + cell + POINTER > PAGE_BYTES)
            break;
        used += cell + POINTER;
        *content += cell;
        cells->sizes[count] = (uint8_t)record;
    }
    return count;
}

/* Writes a page; a word behind it may be written over. */
static void write_page(const Job *job, Py_ssize_t row, const Cells *cells, int count, int content, uint8_t *page)
{
    int begin = PAGE_BYTES - content, number, column, shift, value = 0;
    uint8_t *place = page + begin, *pointer = page + LEAF_HEAD;
    memset(page, 0, (size_t)begin);
    page[0] = LEAF;
    page[3] = (uint8_t)(count >> 8);
    page[4] = (uint8_t)count;
    page[5] = (uint8_t)(begin >> 8);
    page[6] = (uint8_t)begin;
    for (number = 0; number < count; number++) {
        int64_t id = job->first_row + row + number;
        *pointer++ = (uint8_t)((place - page) >> 8);
        *pointer++ = (uint8_t)(place - page);
        *place++ = cells->sizes[number];
        for (shift = 7 * (id_bytes(id) - 1); shift >= 0; shift -= 7)
            *place++ = (uint8_t)((id >> shift & 0x7F) | (shift ? 0x80 : 0));
        *place++ = (uint8_t)(2 + job->columns);
        *place++ = NULL_TYPE; /* the key, which is the row's id */
        memcpy(place, cells->types + value, (size_t)job->columns);
        place += job->columns;
        for (column = 0; column < job->columns; column++, value++)
            place = put(place, cells->words[value], SIZES[cells->types[value]]);
    }
}

/* Returns how many pages were written; -1 if there is no room for them, -2 if a record is too long. */
static Py_ssize_t write_pages(const Job *job, Cells *cells)
{
    Py_ssize_t row = 0, pages = 0;
    while (row < job->rows) {
        int content, count = fill(job, row, cells, &content);
        if (!count)
            return -2;
        if (pages == job->most_pages)
            return -1;
        write_page(job, row, cells, count, content, job->pages + pages * PAGE_BYTES);
        row += count;
        job->last_rows[pages++] = job->first_row + row - 1;
    }
    return pages;
}

static int take_column(Column *column, PyObject *given, Py_ssize_t rows)
{
    PyObject *values, *missing;
    int is_real;
    if (!PyArg_ParseTuple(given, "pOO", &is_real, &values, &missing))
        return 0;
    if (PyObject_GetBuffer(values, &column->buffers[0], PyBUF_SIMPLE) < 0)
        return 0;
    if (missing != Py_None && PyObject_GetBuffer(missing, &column->buffers[1], PyBUF_SIMPLE) < 0)
        return 0;
    if (column->buffers[0].len / WORD_BYTES < rows || (missing != Py_None && column->buffers[1].len < rows)) {
        PyErr_SetString(PyExc_ValueError, "a column is shorter than the number of rows");
        return 0;
    }
    if (is_real)
        column->reals = column->buffers[0].buf;
    else
        column->integers = column->buffers[0].buf;
    column->missing = missing == Py_None ? NULL : column->buffers[1].buf;
    return 1;
}

PyDoc_STRVAR(leaves_doc,
             "leaves(first_row, rows, columns, pages, last_rows) -> int\n\n"
             "Write rows as leaves and the last row of each; return how many leaves there are.\n\n"
             "A column is (whether its values are doubles, values, missing or None).");

static PyObject *leaves(PyObject *module, PyObject *args)
{
    Py_buffer pages = {0}, last_rows = {0};
    PyObject *columns, *found = NULL;
    Column *column = NULL;
    Cells *cells = NULL;
    Job job;
    Py_ssize_t taken = 0, rows, written;
    long long first_row;
    int number;
    PyThreadState *thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "LnO!w*w*:leaves", &first_row, &rows, &PyTuple_Type, &columns, &pages, &last_rows))
        return NULL;
    job.columns = (int)PyTuple_Size(columns);
    if (PyTuple_Size(columns) > MAX_COLUMNS || rows < 0 || first_row < 1 || first_row > MAX_ROW_ID - rows) {
        PyErr_SetString(PyExc_ValueError, "too many columns or rows");
        goto released;
    }
    column = PyMem_Calloc((size_t)job.columns + 1, sizeof *column);
    cells = PyMem_Malloc(sizeof *cells);
    if (!column || !cells) {
        PyErr_NoMemory();
        goto released;
    }
    for (; taken < job.columns; taken++)
        if (!take_column(&column[taken], PyTuple_GetItem(columns, taken), rows)) {
            taken++;
            goto released;
        }
    job.column = column;
    job.first_row = first_row;
    job.rows = rows;
    job.pages = pages.buf;
    job.last_rows = last_rows.buf;
    /* Behind the last page there is room for what its last value writes over. */
    job.most_pages = pages.len < WORD_BYTES ? 0 : (pages.len - WORD_BYTES) / PAGE_BYTES;
    if (job.most_pages > last_rows.len / (Py_ssize_t)sizeof *job.last_rows)
        job.most_pages = last_rows.len / (Py_ssize_t)sizeof *job.last_rows;
    thread = PyEval_SaveThread();
    written = write_pages(&job, cells);
    PyEval_RestoreThread(thread);
    if (written < 0)
        PyErr_SetString(PyExc_ValueError, written == -1 ? "there is no room for the pages" : "a record is too long");
    else
        found = PyLong_FromSsize_t(written);
released:
    for (number = 0; number < taken; number++) {
        PyBuffer_Release(&column[number].buffers[0]);
        PyBuffer_Release(&column[number].buffers[1]);
    }
    PyMem_Free(cells);
    PyMem_Free(column);
    PyBuffer_Release(&pages);
    PyBuffer_Release(&last_rows);
    return found;
}

static PyMethodDef METHODS[] = {
    {"leaves", leaves, METH_VARARGS, leaves_doc},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)set_up}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_pages",
    .m_doc = "Rows of numbers to leaves of a SQLite table.",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__pages(void) { return PyModuleDef_Init(&MODULE); }
